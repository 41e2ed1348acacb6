#include "chat/turns.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/failure.h"

namespace command::chat {

namespace {

constexpr size_t always_rendered = 8;  // messages of each kind
constexpr size_t most_kinds = 64;      // messages of further kinds are located by rendering
constexpr size_t most_ahead = 64;      // bytes

constexpr const char* thought_keys[] = {"reasoning_content", "reasoning", "thinking", "thought"};
constexpr const char* call_keys[] = {"tool_calls", "function_call", "refusal"};
constexpr std::string_view thought_begin = "<think>", thought_end = "</think>";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last + 1 - first);
}

size_t common(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// The text of `all` in a range. Empty if the range is not inside of it.
std::string_view part(std::string_view all, size_t begin, size_t end) {
  return begin <= end && end <= all.size() ? all.substr(begin, end - begin) : std::string_view();
}

// Returns the message with the value of one member replaced.
Value with_member(const Value& message, std::string_view key, const Value& replacement) {
  Members members = message.members();
  for (auto& [name, value] : members)
    if (name == key) value = replacement;
  return members;
}
Value without_member(const Value& message, std::string_view key) {
  Members members = message.members();
  std::erase_if(members, [&](const auto& m) { return m.first == key; });
  return members;
}

bool has(const Value& message, const char* key) {
  const Value* const member = message.member(key);
  return member && member->is_true();
}

// The content of a message if it is a text that is not blank.
const std::string* text_of(const Value& message) {
  const Value* const content = message.member("content");
  return content && content->is(Value::Kind::string) && !trimmed(content->text()).empty() ? &content->text()
                                                                                          : nullptr;
}

// Whether the content of a message is a text, and the message has neither thoughts nor calls of tools.
bool is_plain(const Value& message) {
  const std::string* const text = text_of(message);
  const auto has_key = [&](const char* key) { return has(message, key); };
  return text && std::none_of(std::begin(call_keys), std::end(call_keys), has_key) &&
         std::none_of(std::begin(thought_keys), std::end(thought_keys), has_key) &&
         text->find(thought_begin) == std::string::npos && text->find(thought_end) == std::string::npos;
}

// Which members a message has, and whether its text has thoughts.
std::string shape_of(const Value& message) {
  std::string shape;
  for (const char* key : call_keys)
    if (has(message, key)) shape += key, shape += ' ';
  for (const char* key : thought_keys)
    if (has(message, key)) shape += key, shape += ' ';
  if (const std::string* const text = text_of(message))
    shape += text->find(thought_end) == std::string::npos ? "text" : "thoughts and text";
  return shape;
}

// Texts that a rendered message has to contain: the names of the called functions, or the refusal.
std::vector<std::string> texts_of_calls(const Value& message) {
  std::vector<std::string> texts;
  const auto add_name = [&](const Value& call) {
    const Value* const function = call.is(Value::Kind::mapping) ? call.member("function") : nullptr;
    const Value& named = function && function->is(Value::Kind::mapping) ? *function : call;
    const Value* const name = named.is(Value::Kind::mapping) ? named.member("name") : nullptr;
    if (name && name->is(Value::Kind::string)) texts.push_back(name->text());
  };
  if (const Value* const calls = message.member("tool_calls"); calls && calls->is(Value::Kind::list))
    for (const Value& call : calls->list()) add_name(call);
  if (const Value* const call = message.member("function_call")) add_name(*call);
  if (const Value* const refusal = message.member("refusal"); refusal && refusal->is(Value::Kind::string))
    texts.push_back(refusal->text());
  return texts;
}

// Finds the contents of messages in `text`: one range for each message, which is empty for messages that are
// not in `indices`. `with_marks` is the rendering with mark_of(i) in place of the content of each marked
// message i. The result is empty if it does not match the text.
template <class MarkOf>
std::vector<Range> match(const List& messages, const std::vector<size_t>& indices, std::string_view text,
                         std::string_view with_marks, const MarkOf& mark_of) {
  std::vector<Range> places(messages.size());
  size_t at_mark = with_marks.find(mark_of(indices[0]));
  if (at_mark == std::string_view::npos || !text.starts_with(with_marks.substr(0, at_mark))) return {};
  size_t at = at_mark;
  for (size_t k = 0; k < indices.size(); ++k) {
    const size_t after_mark = at_mark + mark_of(indices[k]).size();
    at_mark =
        k + 1 < indices.size() ? with_marks.find(mark_of(indices[k + 1]), after_mark) : with_marks.size();
    if (at_mark == std::string_view::npos) return {};
    const std::string_view between = with_marks.substr(after_mark, at_mark - after_mark);
    const std::string_view content = *text_of(messages[indices[k]]);
    const size_t first = content.find_first_not_of(" \t\r\n"), last = content.find_last_not_of(" \t\r\n") + 1;
    const std::string as_json = Value(std::string(content)).json({});
    // the content appears unchanged, or trimmed on one or both sides, or inside of JSON
    const std::string_view forms[] = {content, content.substr(first, last - first), content.substr(first),
                                      content.substr(0, last),
                                      std::string_view(as_json).substr(1, as_json.size() - 2)};
    const auto found = std::find_if(std::begin(forms), std::end(forms), [&](std::string_view written) {
      return text.substr(at, written.size()) == written &&
             text.substr(at + written.size(), between.size()) == between;
    });
    if (found == std::end(forms)) return {};
    places[indices[k]] = {at, at + found->size()};
    at += found->size() + between.size();
  }
  return at == text.size() ? places : std::vector<Range>();
}

// Finds the contents of messages in the text. `mark` does not occur in it. The result has one range for each
// message, which is empty where the content is not known. A template that looks into contents may write
// marks in another way. In that case, the search is repeated with marks in fewer messages.
std::vector<Range> places_of_contents(const List& messages, std::string_view text, const std::string& mark,
                                      const TurnFinder::Render& render) {
  const auto mark_of = [&](size_t i) { return fmt::format("{}{}.", mark, i); };
  size_t tried = 0;
  for (const int roles : {3, 2, 1}) {
    List marked = messages;
    std::vector<size_t> indices;
    for (size_t i = 0; i < messages.size(); ++i) {
      const bool is_of_assistant = is_assistant(messages[i]);
      const bool gets_mark = is_of_assistant ? is_plain(messages[i])
                             : roles == 3    ? text_of(messages[i]) != nullptr
                                             : roles == 2 && text_of(messages[i]) != nullptr &&
                                                messages[i].member("role")->str() == "user";
      if (!gets_mark) continue;
      marked[i] = with_member(messages[i], "content", Value(mark_of(i)));
      indices.push_back(i);
    }
    if (indices.empty() || indices.size() == tried) continue;
    tried = indices.size();
    try {
      const std::string with_marks = render(std::move(marked), false);
      if (std::vector<Range> places = match(messages, indices, text, with_marks, mark_of); !places.empty())
        return places;
    } catch (const Failure&) {  // a template may refuse a content that it does not know
    }
  }
  return std::vector<Range>(messages.size());
}

std::string marked_text(const std::string& content, const Marks& marks) {
  const size_t open = content.find(thought_begin), close = content.rfind(thought_end);
  if (open == std::string::npos || close == std::string::npos || close < open) return marks.content;
  const size_t thought = content.find_first_not_of(" \t\r\n", open + thought_begin.size()),
               answer = content.find_first_not_of(" \t\r\n", close + thought_end.size());
  if (thought >= close) return content.substr(0, answer) + marks.content;
  const size_t last = content.find_last_not_of(" \t\r\n", close - 1) + 1;
  return content.substr(0, thought) + marks.thought + content.substr(last, answer - last) + marks.content;
}

// The message with marks in place of its text and of its thoughts.
Value marked_message(const Value& message, const std::string& content, const Marks& marks) {
  const Value& given = *message.member("content");
  const std::string text = marked_text(content, marks);
  Value marked = with_member(
      message, "content",
      given.is(Value::Kind::string) ? Value(text) : Value(List{with_member(given.list()[0], "text", text)}));
  for (const char* key : thought_keys)
    if (const Value* const thought = marked.member(key);
        thought && thought->is(Value::Kind::string) && !trimmed(thought->text()).empty())
      marked = with_member(marked, key, marks.thought);
  return marked;
}

// Compares `text` with `marked`, which is the same text with marks in place of one message. Returns the range
// of that message, extended by the characters after it that also follow the mark in `answered`, the rendering
// that ends with the message.
std::optional<Range> in_place_of(const Marks& marks, std::string_view text, std::string_view marked,
                                 std::string_view answered) {
  const size_t content = marked.find(marks.content), there = answered.rfind(marks.content),
               at = std::min(marked.find(marks.thought), content);
  if (content == std::string_view::npos || marked.rfind(marks.content) != content ||
      there == std::string_view::npos)
    return std::nullopt;
  const std::string_view before = marked.substr(0, at), after = marked.substr(content + marks.content.size());
  if (!text.starts_with(before) || !text.ends_with(after) || before.size() + after.size() > text.size())
    return std::nullopt;
  const size_t end = text.size() - after.size();
  return Range(at, end + common(answered.substr(there + marks.content.size()), after));
}

// Finds how much of the text after `prompt` equals the end of `answered`. Thoughts before that end
// may differ.
std::optional<Range> same_end(std::string_view text, std::string_view prompt, std::string_view answered) {
  if (!answered.starts_with(prompt)) return std::nullopt;
  const std::string_view rest = text.substr(prompt.size()), answer = answered.substr(prompt.size());
  for (size_t length = std::min(rest.size(), answer.size()); length > 0; --length) {
    const std::string_view dropped = answer.substr(0, answer.size() - length);
    if (answer.ends_with(rest.substr(0, length)) &&
        (trimmed(dropped).empty() || trimmed(dropped).ends_with(thought_end)))
      return Range(prompt.size(), prompt.size() + length);
  }
  return std::nullopt;
}

// The text of a message: its content, or the only text in a list of parts. `place` names it in a Failure.
std::string text_of_assistant(const Value& message, const std::string& place) {
  const Value* const content = message.member("content");
  if (!content || content->is(Value::Kind::none)) return {};
  if (content->is(Value::Kind::string)) return content->text();
  if (!content->is(Value::Kind::list))
    throw Failure(
        exit_failed,
        fmt::format("{}: expected the content of the assistant to be a string or a list of parts, found {}",
                    place, content->kind_name()));
  const std::string* only = nullptr;
  for (const Value& one : content->list()) {
    const Value* const text = one.is(Value::Kind::mapping) ? one.member("text") : nullptr;
    if (!text || !text->is(Value::Kind::string) || (only && !trimmed(*only).empty()))
      throw Failure(exit_failed,
                    fmt::format("{}: expected one part in the content of the assistant, a text", place));
    only = &text->text();
  }
  return only ? *only : std::string();
}

}  // namespace

bool is_assistant(const Value& message) { return message.member("role")->str() == "assistant"; }

TurnFinder::TurnFinder(const List& messages, std::string_view text, Render render, std::string place,
                       std::string path)
    : messages_(messages),
      text_(text),
      render_(std::move(render)),
      place_(std::move(place)),
      path_(std::move(path)),
      marks_{"WhatTheAssistantThinks", "WhatTheAssistantSays"} {
  for (std::string* const mark : {&marks_.thought, &marks_.content})
    while (text.find(*mark) != std::string_view::npos) *mark += 'X';
}

void TurnFinder::check_written(size_t i) {
  const Content content = content_of(i);
  if (content.has_calls && is_rendered(kind_of(i))) check_calls(i);
  if (content.has_text) check_text(i, content);
}

std::optional<Range> TurnFinder::locate(size_t i) {
  const Content content = content_of(i);
  if (!content.has_text && !content.has_calls) return std::nullopt;
  Kind* const kind = kind_of(i);
  std::optional<Range> range;
  if (!is_rendered(kind)) {
    if (is_plain(messages_[i])) range = by_content(i, *kind);
    if (!range) range = by_neighbours(i, *kind, content);
  }
  if (!range) {
    range = by_rendering(i, content);
    if (kind && messages_.size() > 2 * always_rendered) learn(i, *range, *kind);
  }
  end_ = range->second;
  return range;
}

TurnFinder::Content TurnFinder::content_of(size_t i) const {
  Content content;
  content.text = text_of_assistant(messages_[i], name_of(i));
  content.has_text = !trimmed(content.text).empty();
  content.has_calls = std::any_of(std::begin(call_keys), std::end(call_keys),
                                  [&](const char* key) { return has(messages_[i], key); });
  return content;
}

// Returns the kind of a message, and counts the message. Returns null for the first and last message, and if
// there are too many kinds.
TurnFinder::Kind* TurnFinder::kind_of(size_t i) {
  if (i == 0 || i + 1 == messages_.size()) return nullptr;
  const std::string key = fmt::format("{}\n{}\n{}", messages_[i - 1].member("role")->str(),
                                      messages_[i + 1].member("role")->str(), shape_of(messages_[i]));
  if (kinds_.size() >= most_kinds && !kinds_.contains(key)) return nullptr;
  Kind& kind = kinds_[key];
  ++kind.seen;
  return &kind;
}

bool TurnFinder::is_rendered(const Kind* kind) {
  return !kind || kind->seen <= always_rendered || (kind->seen & (kind->seen - 1)) == 0;
}

// Searches the text after the last match, then the text before it.
bool TurnFinder::is_written(std::string_view what) {
  size_t found = text_.find(what, seen_);
  if (found == std::string_view::npos)
    found = text_.substr(0, seen_ + std::min(what.size(), text_.size() - seen_)).find(what);
  if (found != std::string_view::npos) seen_ = found;
  return found != std::string_view::npos;
}

void TurnFinder::check_calls(size_t i) {
  for (const char* key : call_keys) {
    if (!has(messages_[i], key)) continue;
    bool is_same = false;
    try {
      is_same = with(i, without_member(messages_[i], key)) == text_;
    } catch (const Failure&) {  // the template requires the member
    }
    if (is_same)
      fail(i, std::string_view(key) == "tool_calls" ? "does not write tool calls"
                                                    : fmt::format("does not write {}", key));
  }
}

void TurnFinder::check_text(size_t i, const Content& content) {
  if (is_written(trimmed(content.text))) return;
  // templates may leave out thoughts
  const size_t thoughts = content.text.rfind(thought_end);
  if (thoughts != std::string::npos) {
    const std::string_view answer =
        trimmed(std::string_view(content.text).substr(thoughts + thought_end.size()));
    if (!answer.empty() && is_written(answer)) return;
  }
  if (with(i, marked_message(messages_[i], content.text, marks_)).find(marks_.content) == std::string::npos)
    fail(i, "does not write the assistant's text");
}

std::optional<Range> TurnFinder::by_content(size_t i, const Kind& kind) {
  if (!kind.knows_content || kind.content_differs) return std::nullopt;
  const auto [begin, end] = place(i);
  if (begin == end || begin < end_ + kind.before.size() ||
      part(text_, begin - kind.before.size(), begin) != kind.before ||
      part(text_, end, end + kind.after.size()) != kind.after ||
      !text_.substr(0, begin - kind.before.size()).ends_with(kind.ahead))
    return std::nullopt;
  return Range(begin - kind.before.size(), end + kind.after.size());
}

std::optional<Range> TurnFinder::by_neighbours(size_t i, const Kind& kind, const Content& content) {
  if (!kind.knows_neighbours || kind.neighbours_differ) return std::nullopt;
  const Range last = place(i - 1), next = place(i + 1);
  if (last.first == last.second || next.first == next.second) return std::nullopt;
  const size_t begin = last.second + kind.lead.size();
  if (next.first < kind.tail.size()) return std::nullopt;
  const size_t end = next.first - kind.tail.size();
  if (begin < end_ || begin >= end || part(text_, last.second, begin) != kind.lead ||
      part(text_, end, next.first) != kind.tail)
    return std::nullopt;
  const std::string_view found = text_.substr(begin, end - begin);
  const size_t thoughts = content.text.rfind(thought_end);
  const std::string_view answer = trimmed(
      thoughts == std::string::npos ? std::string_view(content.text)
                                    : std::string_view(content.text).substr(thoughts + thought_end.size()));
  if (found.find(answer) == std::string_view::npos) return std::nullopt;
  for (const std::string& text : texts_of_calls(messages_[i]))
    if (found.find(text) == std::string_view::npos) return std::nullopt;
  return Range(begin, end);
}

Range TurnFinder::by_rendering(size_t i, const Content& content) {
  if (content.has_calls) check_calls(i);
  if (content.has_text) check_text(i, content);
  const std::string prompt = i == 0 ? std::string() : render_(before(i), true);
  const std::string answered = i + 1 == messages_.size() ? std::string(text_) : answered_by(i, messages_[i]);
  const bool has_prompt = !prompt.empty() && text_.starts_with(prompt) && prompt.size() >= end_;
  std::optional<Range> range;
  if (has_prompt && text_.starts_with(answered) && answered.starts_with(prompt) &&
      prompt.size() < answered.size()) {
    range = Range(prompt.size(), answered.size());
  } else if (content.has_calls) {
    if (has_prompt) range = same_end(text_, prompt, answered);
  } else {
    const Value marked = marked_message(messages_[i], content.text, marks_);
    range = in_place_of(marks_, text_, with(i, marked), answered_by(i, marked));
    // the text between the prompt and the part that was found belongs to the message
    if (range && has_prompt && prompt.size() < range->first) range->first = prompt.size();
  }
  if (!range || range->first < end_ || range->first >= range->second)
    fail(i, "changes the assistant's text so that it cannot be found");
  return *range;
}

void TurnFinder::learn(size_t i, const Range& range, Kind& kind) {
  learn_neighbours(i, range, kind);
  if (!is_plain(messages_[i])) return;
  const Range content = place(i);
  if (content.first < range.first || range.second < content.second || content.first == content.second) {
    kind.content_differs = true;
    return;
  }
  const std::string_view before = part(text_, range.first, content.first),
                         after = part(text_, content.second, range.second);
  if (kind.knows_content && (before != kind.before || after != kind.after)) kind.content_differs = true;
  kind.before = before, kind.after = after;
  const std::string_view ahead = part(text_, range.first - std::min(range.first, most_ahead), range.first);
  const auto shared = static_cast<size_t>(
      std::mismatch(ahead.rbegin(), ahead.rend(), kind.ahead.rbegin(), kind.ahead.rend()).first -
      ahead.rbegin());
  kind.ahead = kind.knows_content ? ahead.substr(ahead.size() - shared) : ahead;
  kind.knows_content = true;
}

void TurnFinder::learn_neighbours(size_t i, const Range& range, Kind& kind) {
  const Range last = place(i - 1), next = place(i + 1);
  if (last.first == last.second || next.first == next.second) return;
  if (range.first < last.second || next.first < range.second) {
    kind.neighbours_differ = true;
    return;
  }
  const std::string_view lead = part(text_, last.second, range.first),
                         tail = part(text_, range.second, next.first);
  if (kind.knows_neighbours && (lead != kind.lead || tail != kind.tail)) kind.neighbours_differ = true;
  kind.lead = lead, kind.tail = tail;
  kind.knows_neighbours = true;
}

// Where the content of a message is. Empty if that is not known.
Range TurnFinder::place(size_t i) {
  if (!places_) places_ = places_of_contents(messages_, text_, marks_.content, render_);
  return (*places_)[i];
}

// Renders the whole conversation with another message in place of message `i`.
std::string TurnFinder::with(size_t i, Value message) {
  List list = messages_;
  list[i] = std::move(message);
  return render_(std::move(list), false);
}

List TurnFinder::before(size_t i) const {
  return List(messages_.begin(), messages_.begin() + static_cast<ptrdiff_t>(i));
}

// Renders the messages before `i` with an answer to them.
std::string TurnFinder::answered_by(size_t i, const Value& message) {
  List list = before(i);
  list.push_back(message);
  return render_(std::move(list), false);
}

std::string TurnFinder::name_of(size_t i) const { return fmt::format("{}[{}]", place_, i); }

void TurnFinder::fail(size_t i, const std::string& what) const {
  throw Failure(exit_failed, fmt::format("{}: {} {}", name_of(i), path_, what));
}

bool take_out(std::vector<Range>& generated, const std::vector<Turn>& turns) {
  std::vector<Range> left;
  for (const Range& range : generated) {
    size_t masked = 0, learned = 0;
    auto turn = std::partition_point(turns.begin(), turns.end(),
                                     [&](const Turn& one) { return one.range.second <= range.first; });
    for (; turn != turns.end() && turn->range.first < range.second; ++turn)
      ++(turn->is_masked ? masked : learned);
    if ((masked == 0) == (learned == 0)) return false;
    if (learned > 0) left.push_back(range);
  }
  generated = std::move(left);
  return true;
}

bool take_out(std::vector<Range>& generated, std::string_view text, const List& messages,
              const std::vector<bool>& masked, const std::string& place) {
  std::vector<Range> left;
  auto range = generated.begin();
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!is_assistant(messages[i])) continue;
    if (range == generated.end()) return false;
    const std::string content = text_of_assistant(messages[i], place);
    if (part(text, range->first, range->second).find(trimmed(content)) == std::string_view::npos)
      return false;
    if (i >= masked.size() || !masked[i]) left.push_back(*range);
    ++range;
  }
  if (range != generated.end()) return false;
  generated = std::move(left);
  return true;
}

}  // namespace command::chat
