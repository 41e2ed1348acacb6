// An example of a file, a JSON object, as tokens of which some are learned.
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
  empty,    // a completion, an answer or a text of white space at most, or no message of the assistant
  marked,   // out of the loss, by its author
  no_room,  // a prompt that fills a sample; of a pair, an answer that is cut away
  alike,    // two answers
};
inline constexpr size_t left_out_count = 4;

// Where in the data it stands: as which one, and by its file and line.
struct Origin {
  uint64_t number = 0;
  std::string place;
};

struct Example {
  std::vector<int32_t> tokens;
  std::vector<std::pair<size_t, size_t>> learned;  // begins and ends, in order
  std::optional<LeftOut> left_out = {};            // then the others may be empty
  Origin origin = {};
};

// Throws Failures that begin with `place`.
class ExampleReader {
 public:
  // Borrows what it is given. `end` stands behind every example and is learned too, but for conversations,
  // which end as their template says. Strings are tokens by the tokenizer, prompt and completion as one text;
  // for token ids they are arrays of numbers. `text_member`: where a text is, else "text". `reach`: of
  // messages that begin past so many tokens only the first one is found. Prompt and completion may be
  // messages too, whose template is asked for with the place of the first ones.
  ExampleReader(const std::string& text_member, const Tokenization& tokenization,
                const FindTemplate& chat_template, int32_t end, uint64_t reach = UINT64_MAX)
      : text_member_(text_member),
        tokenization_(tokenization),
        chat_template_(chat_template),
        end_(end),
        reach_(reach) {}

  // {"prompt": …, "completion": …}, {"messages": […]}, {"conversations": […]} or {"text": …}. Marks say what
  // of it is learned (loss_marks.h).
  Example example(std::string_view line, const std::string& place) const;
  // {"prompt": …, "chosen": …, "rejected": …}: two answers to a prompt, of which they alone are learned.
  // Without a prompt it is what both begin with: messages, or of texts tokens.
  struct Pair {
    std::array<Example, 2> answers;
    bool has_prompt;
    std::optional<LeftOut> left_out = {};
  };
  Pair pair(std::string_view line, const std::string& place) const;

 private:
  JsonValue read(std::string_view line, const std::string& place) const;
  Example of_ids(const JsonView& prompt, const JsonView& rest) const;
  Example of_text(const JsonView& prompt, const JsonView& rest) const;
  Example of_conversation(const JsonValue& line, const JsonView& messages, const std::string& place) const;
  Example of_rendered(const chat::ChatTemplate::Text& conversation, const std::string& place) const;
  Example of_messages(const JsonValue& line, const JsonView& prompt, const JsonView& completion,
                      const std::string& place) const;
  chat::ChatTemplate::IsBeyond beyond_reach(const std::string& place) const;
  Example ended(Example example) const;
  static Pair left_out(Pair pair, const JsonView& line);  // where one of its answers is, or the line says so
  bool has_ids() const { return tokenization_.kind() == Tokenization::Kind::ids; }

  const std::string& text_member_;
  const Tokenization& tokenization_;
  const FindTemplate& chat_template_;
  const int32_t end_;
  const uint64_t reach_;
};

}  // namespace command
