// How a model wants conversations written: its chat_template, a Jinja2 template as transformers' apply_chat_template carries it out.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_value.h"

namespace command::chat {

class ChatTemplate {
 public:
  // Of `file`, a template by itself, or where that is empty of the folder's chat_template.jinja or tokenizer_config.json; the special
  // tokens that it may name are those of the folder (none: ""). Throws a Failure that names the file where it is no template, or has what is
  // not known here. Nothing: there is none.
  static std::optional<ChatTemplate> find(const std::string& file, const std::string& folder);

  struct Text {
    std::string text;
    std::vector<std::pair<size_t, size_t>> said;   // what the assistant says in it, and ends with: begin and end, in bytes
    uint64_t work = 0;                             // of the interpreter, for all of it
  };
  // A conversation: messages, an array of objects with a role and a content; of `line`, which has it, tools and chat_template_kwargs are
  // handed on. Of what the assistant says messages from `first` on count, unless the template says itself what counts. `place` begins every
  // Failure: of what the template refuses, of what the assistant says and is not found in the text. From the first message on that begins where
  // is_beyond(text, byte) says so, none is looked for. `masked`: of each message whether it does not count; none: all do.
  // To look for a message by rendering takes time for all before it. Of plain messages, which say a text and nothing else, the first ones of a kind
  // and ever fewer of the others are looked for so: their time is proportional to the conversation. Messages with thoughts or calls of tools are all
  // looked for so.
  using IsBeyond = std::function<bool(std::string_view text, size_t byte)>;
  Text conversation(const JsonValue& messages, const JsonValue& line, const std::string& place, size_t first = 0, const IsBeyond& is_beyond = {}, const std::vector<bool>& masked = {}) const;
  // Up to where the assistant is to speak.
  std::string prompt(const JsonValue& messages, const JsonValue& line, const std::string& place) const;
  // Special tokens that it writes into a small conversation: those of the folder, and what looks like one (<|im_end|>), but for names of roles, which
  // some models have as plain text (<|user|>). Empty where it refuses that conversation.
  std::vector<std::string> special_tokens() const;
  const std::string& path() const;
  // What stands behind an answer: the end of a turn, if anything.
  std::string end_of_answer(const std::string& place) const;

 private:
  struct Parts;
  explicit ChatTemplate(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace command::chat
