// Finds the assistant's messages in a rendered conversation.
//
// If the conversation up to a message renders as a prefix of the whole text, the message is what follows the
// prompt. A template may write a message in the middle of a conversation differently than at its end (without
// thoughts or without the last token), and may also change the text before it. In that case, the message is
// the part of the text that changes with its content.
//
// Locating a message by rendering takes time proportional to all text before it. Therefore only the first
// messages of a kind and a decreasing share of the later ones are located by rendering. The others are
// located by the text around their content, or by the text between them and the contents of the messages
// before and after them. That text must be the same as for the messages of this kind that were rendered.
// Therefore the total time is proportional to the conversation for almost all templates.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/value.h"

namespace command::chat {

using Range = std::pair<size_t, size_t>;  // begin and end, in bytes

// An assistant message.
struct Turn {
  Range range;
  bool is_masked;  // its author took it out of the loss
};

// Placeholders for the thoughts and for the content of a message. They do not occur in the text.
struct Marks {
  std::string thought, content;
};

class TurnFinder {
 public:
  // Renders other messages with the same template and variables. With `asks`, the text ends where the
  // assistant answers.
  using Render = std::function<std::string(List messages, bool asks)>;
  // `text` is the rendering of `messages`. Both are borrowed. `place` and `path`, the template's file, begin
  // every Failure.
  TurnFinder(const List& messages, std::string_view text, Render render, std::string place, std::string path);

  // Checks that the template writes the content of the assistant message `i`.
  void check_written(size_t i);
  // Locates message `i`. Returns nothing if it is empty. Messages have to be located in order.
  std::optional<Range> locate(size_t i);

 private:
  // Messages of a kind have the same members, and neighbours with the same roles.
  struct Kind {
    size_t seen = 0;
    // The learned text before and after the content. Known after a message was located by rendering. `ahead`
    // is the text in front of the learned text, as far as all these messages share it.
    std::string before, after, ahead;
    bool knows_content = false, content_differs = false;
    // The text between the contents of the neighbours and the learned text.
    std::string lead, tail;
    bool knows_neighbours = false, neighbours_differ = false;
  };
  // The parts of a message of the assistant.
  struct Content {
    bool has_text = false, has_calls = false;
    std::string text;
  };

  Content content_of(size_t i) const;
  Kind* kind_of(size_t i);
  static bool is_rendered(const Kind* kind);
  bool is_written(std::string_view what);
  void check_calls(size_t i);
  void check_text(size_t i, const Content& content);
  std::optional<Range> by_content(size_t i, const Kind& kind);
  std::optional<Range> by_neighbours(size_t i, const Kind& kind, const Content& content);
  Range by_rendering(size_t i, const Content& content);
  void learn(size_t i, const Range& range, Kind& kind);
  void learn_neighbours(size_t i, const Range& range, Kind& kind);
  Range place(size_t i);
  std::string with(size_t i, Value message);
  List before(size_t i) const;
  std::string answered_by(size_t i, const Value& message);
  std::string name_of(size_t i) const;
  [[noreturn]] void fail(size_t i, const std::string& what) const;

  const List& messages_;
  std::string_view text_;
  Render render_;
  std::string place_, path_;
  Marks marks_;
  size_t end_ = 0;   // of the last located message
  size_t seen_ = 0;  // where a text was last found
  std::map<std::string, Kind> kinds_;
  std::optional<std::vector<Range>> places_;  // of the contents of messages; empty ranges are unknown
};

bool is_assistant(const Value& message);

// Removes the texts of masked messages from the ranges that the template marks as generated. Returns false if
// a range covers both masked and learned messages, or no known message. `turns` are in order and do not
// overlap.
bool take_out(std::vector<Range>& generated, const std::vector<Turn>& turns);
// Does the same for a template that marks each assistant message exactly once and in order. Returns false if
// the contents of the messages show that it does not.
bool take_out(std::vector<Range>& generated, std::string_view text, const List& messages,
              const std::vector<bool>& masked, const std::string& place);

}  // namespace command::chat
