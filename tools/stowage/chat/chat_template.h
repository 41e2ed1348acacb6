// A model's chat template: a Jinja2 template that turns a conversation into text, as transformers'
// apply_chat_template does.
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
  // Reads the template in `file`. If `file` is empty, reads the folder's chat_template.jinja or
  // tokenizer_config.json. The special tokens that the template can use come from the folder (empty folder:
  // none). Returns nothing if there is no template. Throws a Failure that names the file if the template is
  // malformed or uses an unsupported feature.
  static std::optional<ChatTemplate> find(const std::string& file, const std::string& folder);

  struct Text {
    std::string text;
    // The learned text: the assistant messages with the ends of their turns. Half-open ranges of bytes.
    std::vector<std::pair<size_t, size_t>> learned;
    uint64_t work = 0;  // steps of the interpreter for the whole conversation
  };
  // Renders a conversation: `messages` is an array of objects with a role and a content. The template also
  // gets the tools and the chat_template_kwargs of `line`, the line of data with the conversation. `learned`
  // gets the assistant messages from `first` on, unless the template marks the learned text itself. Locating
  // stops at the first message for which is_beyond(text, its first byte) is true. `masked` says for each
  // message whether it is left out of `learned`; if it is empty, all messages count. Throws a Failure that
  // begins with `place` if the template refuses the conversation, if an assistant message is not found in the
  // text, or if finding the messages takes too long. That happens if the template writes many messages in
  // different ways (turns.h).
  using IsBeyond = std::function<bool(std::string_view text, size_t byte)>;
  Text conversation(const Json& messages, const Json& line, const std::string& place, size_t first = 0,
                    const IsBeyond& is_beyond = {}, const std::vector<bool>& masked = {}) const;
  // The text up to the point where the assistant answers.
  std::string prompt(const Json& messages, const Json& line, const std::string& place) const;
  // Special tokens that the template writes for a small conversation: those of the folder, and words that
  // look like one (<|im_end|>). Names of roles (<|user|>) are left out because they are plain text for some
  // models. Empty if the template refuses that conversation.
  std::vector<std::string> special_tokens() const;
  const std::string& path() const;
  // The text that follows an answer, which ends the turn. May be empty.
  std::string end_of_answer(const std::string& place) const;

 private:
  struct Parts;
  explicit ChatTemplate(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace command::chat
