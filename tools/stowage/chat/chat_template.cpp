#include "chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "../failure.h"
#include "../files.h"
#include "interpreter.h"

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
    case JsonValue::Kind::string: return json.text;
    case JsonValue::Kind::number: {
      const char *begin = json.text.data(), *end = begin + json.text.size();
      int64_t whole = 0;
      if (const auto read = std::from_chars(begin, end, whole); read.ec == std::errc() && read.ptr == end) return whole;
      double real = 0;
      if (json.text.find_first_of(".eE") == std::string::npos || std::from_chars(begin, end, real).ec != std::errc())
        throw Failure(exit_failed, fmt::format("{}: the number {} is too large", place, json.text));
      return real;
    }
    case JsonValue::Kind::array: {
      List list;
      for (const JsonValue& element : json.elements) list.push_back(value_of(element, place));
      return list;
    }
    default: {
      Members members;
      for (const JsonMember& member : json.members) {
        std::erase_if(members, [&](const auto& m) { return m.first == member.key; });   // of two with one name the last one counts
        members.emplace_back(member.key, value_of(member.value, place));
      }
      return members;
    }
  }
}

// A token is a string, or an object with its content.
std::string token_text(const JsonView& token) { return token.is_null() ? "" : token.is_text() ? token.text() : token.at("content").text_or(""); }

// One, or several by name, of which the default is meant.
std::optional<std::string> template_in(const JsonView& config) {
  const JsonView found = config.at("chat_template");
  if (found.is_null()) return std::nullopt;
  if (!found.is_array()) return found.text();
  for (const JsonView& one : found.elements())
    if (one.at("name").text() == "default") return one.at("template").text();
  return std::nullopt;
}

List messages_of(const JsonValue& messages, const std::string& place) {
  const JsonView view(messages, place);
  List list;
  for (const JsonView& message : view.elements()) {
    message.at("role").text();   // says what is wrong
    list.push_back(value_of(messages.elements[list.size()], message.place()));
  }
  if (list.empty()) view.fail("at least one message, found none");
  return list;
}

// What a line hands on beside its messages.
Members variables_of(const JsonValue& line, const std::string& place) {
  Members variables;
  const JsonView object(line, place + ": ");
  for (const JsonMember& member : object.members()) {
    if (member.value.kind == JsonValue::Kind::null) continue;
    if (member.key == "tools") variables.emplace_back("tools", value_of(member.value, place));
    if (member.key == "chat_template_kwargs")
      for (const JsonMember& one : object.at("chat_template_kwargs").members()) variables.emplace_back(one.key, value_of(one.value, place));
  }
  return variables;
}

std::string content_of(const Value& message) {
  const Value* content = message.member("content");
  return content && content->is(Value::Kind::string) ? content->text() : std::string();
}
Value with_content(const Value& message, const std::string& content) {
  Members members = message.members();
  for (auto& [name, value] : members)
    if (name == "content") value = content;
  return members;
}
std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last + 1 - first);
}

size_t common(std::string_view a, std::string_view b) { return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin()); }

using Range = std::pair<size_t, size_t>;   // begin and end, in bytes

// In the place of what is thought, and of what is said.
struct Marks { std::string thought, said; };
std::string marked_content(const std::string& content, const Marks& marks) {
  const size_t open = content.find("<think>"), close = content.rfind("</think>");
  if (open == std::string::npos || close == std::string::npos || close < open) return marks.said;
  const size_t thought = content.find_first_not_of(" \t\r\n", open + 7), said = content.find_first_not_of(" \t\r\n", close + 8);
  if (thought >= close) return content.substr(0, said) + marks.said;
  const size_t thought_end = content.find_last_not_of(" \t\r\n", close - 1) + 1;
  return content.substr(0, thought) + marks.thought + content.substr(thought_end, said - thought_end) + marks.said;
}

// What stands in a text where another one, the same but for that, has marks, and of what follows there as much as follows the mark in
// `answered`, where it ends the text.
std::optional<Range> in_place_of(const Marks& marks, std::string_view text, std::string_view marked, std::string_view answered) {
  const size_t said = marked.find(marks.said), there = answered.rfind(marks.said), at = std::min(marked.find(marks.thought), said);
  if (said == std::string_view::npos || marked.rfind(marks.said) != said || there == std::string_view::npos) return std::nullopt;
  const std::string_view before = marked.substr(0, at), behind = marked.substr(said + marks.said.size());
  if (!text.starts_with(before) || !text.ends_with(behind) || before.size() + behind.size() > text.size()) return std::nullopt;
  const size_t end = text.size() - behind.size();
  return Range(at, end + common(answered.substr(there + marks.said.size()), behind));
}

// Where a text goes on as `answered` ends, behind what asks for it: of messages without content, which have calls of tools.
std::optional<Range> same_end(std::string_view text, std::string_view asked, std::string_view answered) {
  const size_t begin = common(asked, text);
  const std::string_view rest = text.substr(begin), answer = answered.substr(common(asked, answered));
  for (size_t length = std::min(rest.size(), answer.size()); length > answer.size() / 2; --length)
    if (answer.ends_with(rest.substr(0, length))) return Range(begin, begin + length);
  return std::nullopt;
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::find(const std::string& file, const std::string& folder) {
  auto parts = std::make_shared<Parts>();
  std::optional<std::string> source;
  const std::string beside = folder + "/chat_template.jinja", config_path = folder + "/" + config_name;
  for (const std::string& path : {file, folder.empty() ? std::string() : beside})
    if (!source && !path.empty() && (path == file || is_there(path))) source = read_text(path), parts->path = path;
  if (const auto config = folder.empty() ? std::nullopt : read_text_if_there(config_path)) {
    const JsonValue json = read_json(*config, config_path);
    const JsonView view(json, config_path + ": ");
    for (const char* name : {"bos_token", "eos_token", "pad_token", "unk_token"})
      if (!view.at(name).is_null()) parts->special_tokens.emplace_back(name, token_text(view.at(name)));
    if (!source && (source = template_in(view))) parts->path = config_path + ": chat_template";
  }
  if (!source) return std::nullopt;
  try {
    parts->program = parse(*source);
  } catch (const TemplateError& error) {
    throw Failure(exit_failed, fmt::format("{}, {}", parts->path, error.what()));
  }
  return ChatTemplate(std::move(parts));
}

std::string ChatTemplate::prompt(const JsonValue& messages, const JsonValue& line, const std::string& place) const {
  return parts_->render(messages_of(messages, place), variables_of(line, place), true, place).text;
}

// Where the template says itself what the assistant says, that is it. Else it is what stands behind the prompt that asks for it. In the middle
// of a conversation a template may write it otherwise than at its end (without what was thought, or without a last token), and what comes
// before it too: then it is what changes with the content.
ChatTemplate::Text ChatTemplate::conversation(const JsonValue& messages, const JsonValue& line, const std::string& place) const {
  const List all = messages_of(messages, place);
  const Members variables = variables_of(line, place);
  Rendered whole = parts_->render(all, variables, false, place);
  Text result{std::move(whole.text), std::move(whole.generated)};
  if (!result.said.empty()) return result;
  const std::string_view text = result.text;
  Marks marks = {"WhatTheAssistantThinks", "WhatTheAssistantSays"};
  for (std::string* const mark : {&marks.thought, &marks.said})
    while (text.find(*mark) != std::string_view::npos) *mark += 'X';
  size_t behind = 0;   // what was said before
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].member("role")->str() != "assistant") continue;
    const List before(all.begin(), all.begin() + static_cast<ptrdiff_t>(i));
    const auto answered_by = [&](const Value& message) {
      List list = before;
      list.push_back(message);
      return parts_->render(std::move(list), variables, false, place).text;
    };
    const std::string asked = i == 0 ? std::string() : parts_->render(before, variables, true, place).text;
    const std::string answered = i + 1 == all.size() ? result.text : answered_by(all[i]);
    const bool is_asked = !asked.empty() && text.starts_with(asked) && asked.size() >= behind;
    std::optional<Range> said;
    if (is_asked && text.starts_with(answered) && answered.starts_with(asked) && asked.size() < answered.size()) {
      said = Range(asked.size(), answered.size());
    } else if (const std::string content = content_of(all[i]); !trimmed(content).empty()) {
      List marked = all;
      marked[i] = with_content(all[i], marked_content(content, marks));
      said = in_place_of(marks, text, parts_->render(marked, variables, false, place).text, answered_by(marked[i]));
      if (said && is_asked && asked.size() < said->first) said->first = asked.size();   // with what stands between
    } else if (const Value* const calls = all[i].member("tool_calls"); calls && calls->is_true()) {
      said = same_end(text, asked, answered);
    } else {
      continue;   // says nothing
    }
    if (!said || said->first < behind || said->first >= said->second)
      throw Failure(exit_failed, fmt::format("{}[{}]: {} writes what the assistant says so that it is not found again", place, i, parts_->path));
    result.said.push_back(*said);
    behind = said->second;
  }
  return result;
}

}  // namespace command::chat
