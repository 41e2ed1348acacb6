#include "chat/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/failure.h"
#include "base/files.h"
#include "base/lines.h"
#include "chat/interpreter.h"
#include "tokenizer/unicode.h"

namespace command::chat {

struct ChatTemplate::Parts {
  std::string path;
  std::shared_ptr<const Statements> program;
  Members special_tokens;

  Rendered render(List messages, const Members& of_line, bool asks, const std::string& place) const {
    Members variables = special_tokens;
    for (const char* name : {"tools", "documents"}) variables.emplace_back(name, Value::none());
    for (const auto& member : of_line) {
      std::erase_if(variables, [&](const auto& m) { return m.first == member.first; });
      variables.push_back(member);
    }
    variables.emplace_back("messages", std::move(messages));
    variables.emplace_back("add_generation_prompt", asks);
    try {
      return chat::render(program, std::move(variables));
    } catch (const TemplateError& error) {
      throw Failure(exit_failed, fmt::format("{}: {}, {}", place, path, error.what()));
    }
  }
};

namespace {

constexpr const char* config_name = "tokenizer_config.json";

Value value_of(const JsonValue& json, const std::string& place) {
  switch (json.kind) {
    case JsonValue::Kind::null: return Value::none();
    case JsonValue::Kind::boolean: return json.boolean;
    case JsonValue::Kind::string: require_utf8(json.text, place); return json.text;
    case JsonValue::Kind::number: {
      const char *begin = json.text.data(), *end = begin + json.text.size();
      int64_t whole = 0;
      if (const auto read = std::from_chars(begin, end, whole); read.ec == std::errc() && read.ptr == end)
        return whole;
      double real = 0;
      const auto read = std::from_chars(begin, end, real);
      if (json.text.find_first_of(".eE") == std::string::npos || read.ec != std::errc() || read.ptr != end)
        throw Failure(exit_failed,
                      fmt::format("{}: the number {} is none that is known here", place, json.text));
      return real;
    }
    case JsonValue::Kind::array: {
      List list;
      for (const JsonValue& element : json.elements) list.push_back(value_of(element, place));
      return list;
    }
    default: {
      Members members;
      std::map<std::string_view, size_t> places;
      for (const JsonMember& member : json.members) {
        require_utf8(member.key, place);
        // for a repeated name: the place of the first member and the value of the last
        const auto [known, is_new] = places.emplace(member.key, members.size());
        if (is_new) members.emplace_back(member.key, value_of(member.value, place));
        else members[known->second].second = value_of(member.value, place);
      }
      return members;
    }
  }
}

// A token is a string, or an object with its content.
std::string token_text(const JsonView& token) {
  return token.is_null() ? "" : token.is_text() ? token.text() : token.at("content").text_or("");
}

// A config has one template, or a list of templates with names. The one named "default" is read then.
std::optional<std::string> template_in(const JsonView& config) {
  const JsonView found = config.at("chat_template");
  if (found.is_null()) return std::nullopt;
  if (!found.is_array()) return found.text();
  for (const JsonView& one : found.elements())
    if (one.at("name").text() == "default") return one.at("template").text();
  return std::nullopt;
}

// Converts a member of a data line. `place` names it in the error for a value that is too long or too deep.
Value given(const JsonValue& json, const std::string& place) {
  try {
    return value_of(json, place);
  } catch (const TemplateError& error) {
    throw Failure(exit_failed, fmt::format("{}: {}", place, error.what()));
  }
}

List messages_of(const JsonValue& messages, const std::string& place) {
  const JsonView view(messages, place);
  List list;
  for (const JsonView& message : view.elements()) {
    message.at("role").text();  // throws if the role is missing or is no text
    list.push_back(given(messages.elements[list.size()], message.place()));
  }
  if (list.empty()) view.fail("at least one message, found none");
  return list;
}

// The variables that a line passes to the template in addition to its messages.
Members variables_of(const JsonValue& line, const std::string& place) {
  Members variables;
  const JsonView object(line, place + ": ");
  for (const JsonMember& member : object.members()) {
    if (member.value.kind == JsonValue::Kind::null) continue;
    if (member.key == "tools") {  // some data sets store the tools as JSON text
      const bool is_text = member.value.kind == JsonValue::Kind::string;
      variables.emplace_back(
          "tools", given(is_text ? read_json(member.value.text, place + ": tools") : member.value, place));
    }
    if (member.key == "chat_template_kwargs")
      for (const JsonMember& one : object.at("chat_template_kwargs").members())
        variables.emplace_back(one.key, given(one.value, place));
  }
  return variables;
}

// Returns the message with the value of one member replaced.
Value with_member(const Value& message, std::string_view key, const Value& replacement) {
  Members members = message.members();
  for (auto& [name, value] : members)
    if (name == key) value = replacement;
  return members;
}
std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last + 1 - first);
}

Value without_member(const Value& message, std::string_view key) {
  Members members = message.members();
  std::erase_if(members, [&](const auto& m) { return m.first == key; });
  return members;
}
// Whether the rendered text stays the same when something is left out. False if the template refuses to do
// without it.
template <class Render>
bool is_without(std::string_view text, const Render& render) {
  try {
    return render() == text;
  } catch (const Failure&) { return false; }
}

size_t common(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

using Range = std::pair<size_t, size_t>;  // begin and end, in bytes

bool is_assistant(const Value& message) { return message.member("role")->str() == "assistant"; }

// Whether an assistant message has text as its content and has neither thoughts nor tool calls.
bool is_plain(const Value& message) {
  const Value* const content = message.member("content");
  if (!content || !content->is(Value::Kind::string) || trimmed(content->text()).empty()) return false;
  for (const char* key :
       {"tool_calls", "function_call", "refusal", "reasoning_content", "reasoning", "thinking", "thought"})
    if (const Value* const more = message.member(key); more && more->is_true()) return false;
  return content->text().find("<think>") == std::string::npos &&
         content->text().find("</think>") == std::string::npos;
}

// Finds the contents of plain messages in `text`: one range for each message, which is empty for all other
// messages. `mark` does not occur in the text. render() renders the same conversation with other messages.
// The result is empty if the rendering with marks does not match the text.
template <class Render>
std::vector<Range> places_of_plain(const List& messages, std::string_view text, const std::string& mark,
                                   const Render& render) {
  List marked = messages;
  std::vector<size_t> plain;
  const auto mark_of = [&](size_t i) { return fmt::format("{}{}.", mark, i); };
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!is_assistant(messages[i]) || !is_plain(messages[i])) continue;
    marked[i] = with_member(messages[i], "content", Value(mark_of(i)));
    plain.push_back(i);
  }
  std::string with_marks;
  try {
    with_marks = render(std::move(marked));
  } catch (const Failure&) {  // a template may refuse a content that it does not know
    return {};
  }
  std::vector<Range> places(messages.size());
  size_t at = 0, at_mark = plain.empty() ? std::string::npos : with_marks.find(mark_of(plain[0]));
  if (at_mark == std::string::npos || !text.starts_with(std::string_view(with_marks).substr(0, at_mark)))
    return {};
  at = at_mark;
  for (size_t k = 0; k < plain.size(); ++k) {
    const size_t behind_mark = at_mark + mark_of(plain[k]).size();
    at_mark = k + 1 < plain.size() ? with_marks.find(mark_of(plain[k + 1]), behind_mark) : with_marks.size();
    if (at_mark == std::string::npos) return {};
    const std::string_view between = std::string_view(with_marks).substr(behind_mark, at_mark - behind_mark),
                           said = messages[plain[k]].member("content")->text();
    const size_t first = said.find_first_not_of(" \t\r\n"), last = said.find_last_not_of(" \t\r\n") + 1;
    bool is_found = false;  // the content appears unchanged, or trimmed on one or both sides
    for (const std::string_view written :
         {said, said.substr(first, last - first), said.substr(first), said.substr(0, last)}) {
      if (text.substr(at, written.size()) != written ||
          text.substr(at + written.size(), between.size()) != between)
        continue;
      places[plain[k]] = {at, at + written.size()};
      at += written.size() + between.size();
      is_found = true;
      break;
    }
    if (!is_found) return {};
  }
  return at == text.size() ? places : std::vector<Range>();
}

// The text around the contents of plain messages of one kind. Messages of a kind have the same neighbours.
struct Around {
  std::string before, behind;  // the learned text before and after the content
  // the longest common text before `before`, over all messages that were located by rendering
  std::string ahead;
  size_t seen = 0;       // number of messages of this kind
  bool differs = false;  // the messages located by rendering have different surroundings
  bool ahead_is_known = false;
};
constexpr size_t always_rendered = 8;  // messages of each kind
constexpr size_t most_kinds = 16;      // messages of further kinds are located by rendering
constexpr size_t most_ahead = 64;      // bytes

// Placeholders for the thoughts and for the content of a message.
struct Marks {
  std::string thought, said;
};
std::string marked_text(const std::string& content, const Marks& marks) {
  const size_t open = content.find("<think>"), close = content.rfind("</think>");
  if (open == std::string::npos || close == std::string::npos || close < open) return marks.said;
  const size_t thought = content.find_first_not_of(" \t\r\n", open + 7),
               said = content.find_first_not_of(" \t\r\n", close + 8);
  if (thought >= close) return content.substr(0, said) + marks.said;
  const size_t thought_end = content.find_last_not_of(" \t\r\n", close - 1) + 1;
  return content.substr(0, thought) + marks.thought + content.substr(thought_end, said - thought_end) +
         marks.said;
}

// The text of a message: its content, or the only text in a list of parts.
struct Said {
  bool anything = false;
  std::string text;
};
Said said_by(const Value& message, const std::string& place) {
  const Value* const content = message.member("content");
  if (!content || content->is(Value::Kind::none)) return {};
  if (content->is(Value::Kind::string)) return {!trimmed(content->text()).empty(), content->text()};
  if (!content->is(Value::Kind::list))
    throw Failure(
        exit_failed,
        fmt::format("{}: expected the content of the assistant to be a string or a list of parts, found {}",
                    place, content->kind_name()));
  Said said;
  for (const Value& part : content->list()) {
    const Value* const text = part.is(Value::Kind::mapping) ? part.member("text") : nullptr;
    if (!text || !text->is(Value::Kind::string) || said.anything)
      throw Failure(exit_failed, fmt::format("{}: of the assistant one part is known here, a text", place));
    said = {!trimmed(text->text()).empty(), text->text()};
  }
  return said;
}
Value marked_message(const Value& message, const Said& said, const Marks& marks) {
  const Value& content = *message.member("content");
  const std::string text = marked_text(said.text, marks);
  Value marked = with_member(message, "content",
                             content.is(Value::Kind::string)
                                 ? Value(text)
                                 : Value(List{with_member(content.list()[0], "text", text)}));
  for (const char* key : {"reasoning_content", "reasoning", "thinking", "thought"})
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
  const size_t said = marked.find(marks.said), there = answered.rfind(marks.said),
               at = std::min(marked.find(marks.thought), said);
  if (said == std::string_view::npos || marked.rfind(marks.said) != said || there == std::string_view::npos)
    return std::nullopt;
  const std::string_view before = marked.substr(0, at), behind = marked.substr(said + marks.said.size());
  if (!text.starts_with(before) || !text.ends_with(behind) || before.size() + behind.size() > text.size())
    return std::nullopt;
  const size_t end = text.size() - behind.size();
  return Range(at, end + common(answered.substr(there + marks.said.size()), behind));
}

// The range of an assistant message.
struct Turn {
  Range range;
  bool is_masked;
};

// Removes the texts of masked messages from the ranges that the template marks as generated. Returns false if
// a range covers both masked and learned messages, or no known message.
// turns are in order and do not overlap
bool take_out(std::vector<Range>& said, const std::vector<Turn>& turns) {
  std::vector<Range> left;
  for (const Range& range : said) {
    size_t masked = 0, learned = 0;
    auto turn = std::partition_point(turns.begin(), turns.end(),
                                     [&](const Turn& one) { return one.range.second <= range.first; });
    for (; turn != turns.end() && turn->range.first < range.second; ++turn)
      ++(turn->is_masked ? masked : learned);
    if ((masked == 0) == (learned == 0)) return false;
    if (learned > 0) left.push_back(range);
  }
  said = std::move(left);
  return true;
}

// Does the same for a template that marks each assistant message exactly once and in order. Returns false if
// the contents of the messages show that it does not.
bool take_out(ChatTemplate::Text& text, const List& messages, const std::vector<bool>& masked,
              const std::string& place) {
  std::vector<Range> left;
  auto range = text.said.begin();
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].member("role")->str() != "assistant") continue;
    if (range == text.said.end()) return false;
    const std::string_view written =
        std::string_view(text.text).substr(range->first, range->second - range->first);
    if (written.find(trimmed(said_by(messages[i], place).text)) == std::string_view::npos) return false;
    if (i >= masked.size() || !masked[i]) left.push_back(*range);
    ++range;
  }
  if (range != text.said.end()) return false;
  text.said = std::move(left);
  return true;
}

// Finds how much of the text after the prompt `asked` equals the end of `answered`. Thoughts before that end
// may differ.
std::optional<Range> same_end(std::string_view text, std::string_view asked, std::string_view answered) {
  if (!answered.starts_with(asked)) return std::nullopt;
  const std::string_view rest = text.substr(asked.size()), answer = answered.substr(asked.size());
  for (size_t length = std::min(rest.size(), answer.size()); length > 0; --length) {
    const std::string_view dropped = answer.substr(0, answer.size() - length);
    if (answer.ends_with(rest.substr(0, length)) &&
        (trimmed(dropped).empty() || trimmed(dropped).ends_with("</think>")))
      return Range(asked.size(), asked.size() + length);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::find(const std::string& file, const std::string& folder) {
  auto parts = std::make_shared<Parts>();
  std::optional<std::string> source;
  const std::string beside = folder + "/chat_template.jinja", config_path = folder + "/" + config_name;
  for (const std::string& path : {file, folder.empty() ? std::string() : beside})
    if (!source && !path.empty() && (path == file || is_there(path)))
      source = without_mark(read_text(path)), parts->path = path;
  if (const auto config = folder.empty() ? std::nullopt : read_text_if_there(config_path)) {
    require_utf8(*config, config_path);
    const JsonValue json = read_json(*config, config_path);
    const JsonView view(json, config_path + ": ");
    for (const JsonMember& member : view.members())
      if (member.key.ends_with("_token") &&
          (member.value.kind == JsonValue::Kind::string || member.value.kind == JsonValue::Kind::object))
        parts->special_tokens.emplace_back(member.key, token_text(view.at(member.key)));
    if (!source && (source = template_in(view))) parts->path = config_path + ": chat_template";
  }
  if (!source) return std::nullopt;
  require_utf8(*source, parts->path);
  try {
    parts->program = parse(*source);
  } catch (const TemplateError& error) {
    throw Failure(exit_failed, fmt::format("{}, {}", parts->path, error.what()));
  }
  return ChatTemplate(std::move(parts));
}

std::string ChatTemplate::prompt(const JsonValue& messages, const JsonValue& line,
                                 const std::string& place) const {
  return parts_->render(messages_of(messages, place), variables_of(line, place), true, place).text;
}

// If the template marks the text of the assistant ({% generation %}), the marks count. Otherwise it is the
// text that follows the rendered prompt. A template may write a message in the middle of a conversation
// differently than at its end (without thoughts or without the last token), and may also change the text
// before it. Then the part that changes with the content counts.
ChatTemplate::Text ChatTemplate::conversation(const JsonValue& messages, const JsonValue& line,
                                              const std::string& place, size_t first,
                                              const IsBeyond& is_beyond,
                                              const std::vector<bool>& masked) const {
  const List all = messages_of(messages, place);
  const Members variables = variables_of(line, place);
  Rendered whole = parts_->render(all, variables, false, place);
  Text result{std::move(whole.text), std::move(whole.generated), whole.work};
  const auto render = [&](List list, bool asks) {
    Rendered rendered = parts_->render(std::move(list), variables, asks, place);
    result.work += rendered.work;
    return std::move(rendered.text);
  };
  const std::string_view text = result.text;
  Marks marks = {"WhatTheAssistantThinks", "WhatTheAssistantSays"};
  for (std::string* const mark : {&marks.thought, &marks.said})
    while (text.find(*mark) != std::string_view::npos) *mark += 'X';
  const bool is_marked = !result.said.empty();  // by {% generation %}
  bool has_masks = std::find(masked.begin(), masked.end(), true) != masked.end();
  if (is_marked && has_masks && take_out(result, all, masked, place)) has_masks = false;
  std::vector<Turn> turns;
  size_t behind = 0, seen = 0;  // end of the last learned range; place where a text was last found
  std::map<std::string, Around> kinds;
  std::optional<std::vector<Range>> places;
  // Range of a plain message that is not located by rendering.
  const auto range_by_kind = [&](size_t i, const Around& around) -> std::optional<Range> {
    if (!places)
      places =
          places_of_plain(all, text, marks.said, [&](List list) { return render(std::move(list), false); });
    if (places->empty() || around.differs) return std::nullopt;
    const auto [begin, end] = (*places)[i];
    if (begin < behind + around.before.size() ||
        text.substr(begin - around.before.size(), around.before.size()) != around.before ||
        text.substr(end, around.behind.size()) != around.behind ||
        !text.substr(0, begin - around.before.size()).ends_with(around.ahead))
      return std::nullopt;
    return Range(begin - around.before.size(), end + around.behind.size());
  };
  for (size_t i = first; i < all.size(); ++i) {
    if (!is_assistant(all[i])) continue;
    const bool is_masked = i < masked.size() && masked[i];
    if (is_masked && !is_marked) continue;
    Around* around = nullptr;
    if (i > first && i + 1 < all.size() && (!is_marked || has_masks) && is_plain(all[i])) {
      const std::string kind =
          fmt::format("{}\n{}", all[i - 1].member("role")->str(), all[i + 1].member("role")->str());
      if (kinds.size() < most_kinds || kinds.contains(kind)) around = &kinds[kind];
    }
    if (around && ++around->seen > always_rendered && (around->seen & (around->seen - 1)) != 0) {
      if (const auto range = range_by_kind(i, *around)) {
        turns.push_back({*range, is_masked});
        behind = range->second;
        if (is_beyond && !is_marked && is_beyond(text, range->first)) break;
        continue;
      }
    }
    const auto before = [&] { return List(all.begin(), all.begin() + static_cast<ptrdiff_t>(i)); };
    const auto answered_by = [&](const Value& message) {
      List list = before();
      list.push_back(message);
      return render(std::move(list), false);
    };
    const std::string at = fmt::format("{}[{}]", place, i);
    const auto failure = [&](const std::string& what) {
      return Failure(exit_failed, fmt::format("{}: {} {}", at, parts_->path, what));
    };
    const auto with = [&](Value message) {  // renders the whole conversation with this message replaced
      List list = all;
      list[i] = std::move(message);
      return render(std::move(list), false);
    };
    const auto is_written = [&](std::string_view what) {  // searches after the last match first
      size_t found = text.find(what, seen);
      if (found == std::string_view::npos)
        found = text.substr(0, seen + std::min(what.size(), text.size() - seen)).find(what);
      if (found != std::string_view::npos) seen = found;
      return found != std::string_view::npos;
    };
    const Said said = said_by(all[i], at);
    bool has_calls = false;
    // other members that an assistant message may have
    for (const char* key : {"tool_calls", "function_call", "refusal"}) {
      const Value* const more = all[i].member(key);
      if (!more || !more->is_true()) continue;
      has_calls = true;
      if (is_without(text, [&] { return with(without_member(all[i], key)); }))
        throw failure(std::string_view(key) == "tool_calls" ? "writes no calls of tools"
                                                            : fmt::format("writes no {}", key));
    }
    if (!said.anything && !has_calls) continue;
    if (said.anything && !is_written(trimmed(said.text)) &&
        with(marked_message(all[i], said, marks)).find(marks.said) == std::string::npos)
      throw failure("does not write what the assistant says");
    if (is_marked && !has_masks) continue;
    const std::string asked = i == 0 ? std::string() : render(before(), true);
    const std::string answered = i + 1 == all.size() ? result.text : answered_by(all[i]);
    const bool is_asked = !asked.empty() && text.starts_with(asked) && asked.size() >= behind;
    std::optional<Range> range;
    if (is_asked && text.starts_with(answered) && answered.starts_with(asked) &&
        asked.size() < answered.size()) {
      range = Range(asked.size(), answered.size());
    } else if (has_calls) {
      if (is_asked) range = same_end(text, asked, answered);
    } else {
      const Value marked = marked_message(all[i], said, marks);
      range = in_place_of(marks, text, with(marked), answered_by(marked));
      // includes the text between the two
      if (range && is_asked && asked.size() < range->first) range->first = asked.size();
    }
    if (!range || range->first < behind || range->first >= range->second)
      throw failure("writes what the assistant says so that it is not found again");
    turns.push_back({*range, is_masked});
    behind = range->second;
    if (is_beyond && !is_marked && is_beyond(text, range->first)) break;
    if (!around || all.size() <= 2 * always_rendered) continue;
    if (!places)
      places =
          places_of_plain(all, text, marks.said, [&](List list) { return render(std::move(list), false); });
    const Range said_at = places->empty() ? Range() : (*places)[i];
    if (said_at.first < range->first || range->second < said_at.second || said_at.first == said_at.second) {
      around->differs = true;
      continue;
    }
    const std::string_view lead = text.substr(range->first, said_at.first - range->first),
                           tail = text.substr(said_at.second, range->second - said_at.second);
    if (around->seen > 1 && (lead != around->before || tail != around->behind)) around->differs = true;
    around->before = lead, around->behind = tail;
    const std::string_view ahead =
        text.substr(range->first - std::min(range->first, most_ahead), std::min(range->first, most_ahead));
    const size_t shared = static_cast<size_t>(
        std::mismatch(ahead.rbegin(), ahead.rend(), around->ahead.rbegin(), around->ahead.rend()).first -
        ahead.rbegin());
    around->ahead = around->ahead_is_known ? ahead.substr(ahead.size() - shared) : ahead;
    around->ahead_is_known = true;
  }
  if (!is_marked)
    for (const Turn& turn : turns) result.said.push_back(turn.range);
  else if (has_masks && !take_out(result.said, turns))
    throw Failure(exit_failed, fmt::format("{}: {} marks what the assistant says so that its messages, some "
                                           "of which are not learned, are not told apart",
                                           place, parts_->path));
  return result;
}

std::vector<std::string> ChatTemplate::special_tokens() const {
  const auto message = [](const char* role) { return Value(Members{{"role", role}, {"content", "-"}}); };
  std::string text;
  for (const List& messages :
       {List{message("system"), message("user"), message("assistant"), message("user")},
        List{message("user"), message("assistant"), message("user")}}) {
    try {
      text = parts_->render(messages, {}, true, "").text + parts_->render(messages, {}, false, "").text;
      break;
    } catch (const Failure&) {  // some templates refuse system messages
    }
  }
  std::vector<std::string> tokens;
  const auto add = [&](const std::string& token) {
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  };
  for (const auto& [name, token] : parts_->special_tokens)
    if (!token.text().empty() && text.find(token.text()) != std::string::npos) add(token.text());
  constexpr std::string_view roles[] = {"<|user|>", "<|assistant|>", "<|system|>", "<|tool|>",
                                        "<|observation|>"};
  for (size_t at = 0; (at = text.find("<|", at)) != std::string::npos; at += 2) {
    const size_t end = text.find_first_of(" \t\r\n<>|", at + 2);
    if (end == std::string::npos || end == at + 2 || text.compare(end, 2, "|>") != 0) continue;
    const std::string token = text.substr(at, end + 2 - at);
    if (std::find(std::begin(roles), std::end(roles), token) == std::end(roles)) add(token);
  }
  return tokens;
}

const std::string& ChatTemplate::path() const { return parts_->path; }

std::string ChatTemplate::end_of_answer(const std::string& place) const {
  const auto message = [](const char* role, const char* content) {
    return Value(Members{{"role", role}, {"content", content}});
  };
  const std::string
      mark = "WhatTheAssistantSays",
      text =
          parts_->render({message("user", "-"), message("assistant", mark.c_str())}, {}, false, place).text;
  const size_t at = text.rfind(mark);
  return at == std::string::npos ? std::string() : text.substr(at + mark.size());
}

}  // namespace command::chat
