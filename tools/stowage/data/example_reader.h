// Reads an example, a JSON object, as tokens, and marks those that are learned.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_value.h"
#include "data/tokenization.h"

namespace command {

using FindTemplate = std::function<const chat::ChatTemplate&(const std::string& place)>;

// Why an example, or a pair of answers, is left out.
enum class LeftOut : uint8_t {
  empty,    // a completion, an answer or a text that is empty or blank, or no message of the assistant
  marked,   // its author took it out of the loss
  no_room,  // its prompt fills a sample, or an answer of the pair is cut away
  alike,    // the two answers of a pair are equal
  bad,      // a question whose answer is not at its place, or that fills a sample
};
inline constexpr size_t left_out_count = 5;

// Where an example is in the data.
struct Origin {
  uint64_t number = 0;  // from 1
  std::string place;    // file and line
};

struct Example {
  std::vector<int32_t> tokens;
  std::vector<std::pair<size_t, size_t>> learned;  // half-open ranges of tokens, ascending
  std::optional<LeftOut> left_out = {};            // if set, tokens and learned may be empty
  Origin origin = {};
};

// Throws Failures that begin with `place`.
class ExampleReader {
 public:
  // Borrows its arguments. `text_member` is the member that holds a plain text. The token `end` follows every
  // example and is learned too; conversations end as their template writes them. A prompt and its completion
  // are strings, which are tokenized as one text, or messages. With token ids, they are arrays of numbers.
  // `chat_template` is called with the place of each conversation. `reach` is the number of tokens of the
  // longest sample. Of the messages that begin after so many tokens, only the first one is located.
  ExampleReader(const std::string& text_member, const Tokenization& tokenization,
                const FindTemplate& chat_template, int32_t end, uint64_t reach = UINT64_MAX)
      : text_member_(text_member),
        tokenization_(tokenization),
        chat_template_(chat_template),
        end_(end),
        reach_(reach) {}

  // Reads {"prompt": …, "completion": …}, {"messages": […]}, {"conversations": […]} or {"text": …}. Marks can
  // take parts out of the loss (loss_marks.h).
  Example example(std::string_view line, const std::string& place) const;
  // Reads {"prompt": …, "chosen": …, "rejected": …}: only the two answers are learned. Without a prompt, the
  // common beginning of both answers is the prompt: their common messages, or their common tokens.
  struct Pair {
    std::array<Example, 2> answers;
    bool has_prompt;
    std::optional<LeftOut> left_out = {};
  };
  Pair pair(std::string_view line, const std::string& place) const;

 private:
  Json read(std::string_view line, const std::string& place) const;
  Example of_ids(const JsonView& prompt, const JsonView& rest) const;
  Example of_text(const JsonView& prompt, const JsonView& rest) const;
  Example of_conversation(const Json& line, const JsonView& messages, const std::string& place) const;
  Example of_rendered(const chat::ChatTemplate::Text& conversation, const std::string& place) const;
  Example of_messages(const Json& line, const JsonView& prompt, const JsonView& completion,
                      const std::string& place) const;
  chat::ChatTemplate::IsBeyond beyond_reach(const std::string& place) const;
  Example ended(Example example) const;
  // Leaves the pair out if one of its answers is left out, or if the line is marked out of the loss.
  static Pair left_out(Pair pair, const JsonView& line);
  bool has_ids() const { return tokenization_.kind() == Tokenization::Kind::ids; }

  const std::string& text_member_;
  const Tokenization& tokenization_;
  const FindTemplate& chat_template_;
  const int32_t end_;
  const uint64_t reach_;
};

}  // namespace command
