// An example of a file, a JSON object, as tokens of which some are learned.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json_value.h"
#include "tokenization.h"

namespace command {

using FindTemplate = std::function<const chat::ChatTemplate&(const std::string& place)>;

struct Example {
  std::vector<int32_t> tokens;
  std::vector<std::pair<size_t, size_t>> learned;   // begins and ends, in order
};

// Throws Failures that begin with `place`.
class ExampleReader {
 public:
  // Borrows what it is given. `end` stands behind every example and is learned too, but for conversations, which end as their template says.
  // Strings are tokens by the tokenizer, prompt and completion as one text; for token ids they are arrays of numbers. `text_member`: where a text
  // is, else "text". `reach`: of messages that begin past so many tokens only the first one is found. Prompt and completion may be messages too, whose template is asked for with the place of the first ones.
  ExampleReader(const std::string& text_member, const Tokenization& tokenization, const FindTemplate& chat_template, int32_t end, uint64_t reach = UINT64_MAX)
      : text_member_(text_member), tokenization_(tokenization), chat_template_(chat_template), end_(end), reach_(reach) {}

  // {"prompt": …, "completion": …}, {"messages": […]}, {"conversations": […]} or {"text": …}.
  Example example(std::string_view line, const std::string& place) const;
  // {"prompt": …, "chosen": …, "rejected": …}: two answers to a prompt, of which they alone are learned. Without a prompt it is what both begin
  // with: messages, or of texts tokens. An answer that says nothing has nothing learned.
  struct Pair {
    std::array<Example, 2> answers;
    bool has_prompt;
  };
  Pair pair(std::string_view line, const std::string& place) const;

 private:
  JsonValue read(std::string_view line, const std::string& place) const;
  Example of_ids(const JsonView& prompt, const JsonView& rest) const;
  Example of_text(const JsonView& prompt, const JsonView& rest) const;
  Example of_conversation(const chat::ChatTemplate::Text& conversation, const std::string& place, bool may_be_empty = false) const;
  Example of_messages(const JsonValue& line, const JsonView& prompt, const JsonView& completion, const std::string& place, bool may_be_empty = false) const;
  chat::ChatTemplate::IsBeyond beyond_reach(const std::string& place) const;
  Example ended(Example example) const;
  bool has_ids() const { return tokenization_.kind() == Tokenization::Kind::ids; }

  const std::string& text_member_;
  const Tokenization& tokenization_;
  const FindTemplate& chat_template_;
  const int32_t end_;
  const uint64_t reach_;
};

}  // namespace command
