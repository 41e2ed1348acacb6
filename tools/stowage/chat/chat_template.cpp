#include "chat/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/failure.h"
#include "base/files.h"
#include "base/lines.h"
#include "chat/interpreter.h"
#include "chat/turns.h"
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

// Limit on the work of finding the assistant's messages in a conversation: the work of `most_renderings`
// renderings of the whole conversation, plus `most_work_for_turns` steps. This takes some seconds.
constexpr uint64_t most_renderings = 100, most_work_for_turns = 100'000'000;

Value value_of_number(const std::string& text, const std::string& place) {
  const char *begin = text.data(), *end = begin + text.size();
  int64_t whole = 0;
  if (const auto read = std::from_chars(begin, end, whole); read.ec == std::errc() && read.ptr == end)
    return whole;
  double real = 0;
  const auto read = std::from_chars(begin, end, real);
  if (text.find_first_of(".eE") == std::string::npos || read.ec != std::errc() || read.ptr != end)
    throw Failure(exit_failed, fmt::format("{}: the number {} is not supported", place, text));
  return real;
}

Value value_of(const Json& json, const std::string& place) {
  if (const bool* const truth = json.as_bool()) return *truth;
  if (const std::string* const number = json.as_written_number()) return value_of_number(*number, place);
  if (const std::string* const text = json.as_string()) {
    require_utf8(*text, place);
    return *text;
  }
  if (json.is_array()) {
    List list;
    for (const Json& element : json.elements()) list.push_back(value_of(element, place));
    return list;
  }
  if (!json.is_object()) return Value::none();
  Members members;
  std::map<std::string_view, size_t> places;
  for (const auto& [name, value] : json.members()) {
    require_utf8(name, place);
    // for a repeated name: the place of the first member and the value of the last
    const auto [known, is_new] = places.emplace(name, members.size());
    if (is_new) members.emplace_back(name, value_of(value, place));
    else members[known->second].second = value_of(value, place);
  }
  return members;
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
Value given(const Json& json, const std::string& place) {
  try {
    return value_of(json, place);
  } catch (const TemplateError& error) {
    throw Failure(exit_failed, fmt::format("{}: {}", place, error.what()));
  }
}

List messages_of(const Json& messages, const std::string& place) {
  const JsonView view(messages, place);
  List list;
  for (const JsonView& message : view.elements()) {
    message.at("role").text();  // throws if the role is missing or not a text
    list.push_back(given(message.raw(), message.place()));
  }
  if (list.empty()) view.fail("at least one message, found none");
  return list;
}

// The variables that a line passes to the template in addition to its messages.
Members variables_of(const Json& line, const std::string& place) {
  Members variables;
  const JsonView object(line, place + ": ");
  for (const auto& [name, value] : object.members()) {
    if (value.is_null()) continue;
    if (name == "tools") {  // some data sets store the tools as JSON text
      const std::string* const text = value.as_string();
      variables.emplace_back("tools", given(text ? read_json(*text, place + ": tools") : value, place));
    }
    if (name == "chat_template_kwargs")
      for (const auto& [variable, held] : object.at("chat_template_kwargs").members())
        variables.emplace_back(variable, given(held, place));
  }
  return variables;
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::find(const std::string& file, const std::string& folder) {
  auto parts = std::make_shared<Parts>();
  std::optional<std::string> source;
  const std::string in_folder = folder + "/chat_template.jinja", config_path = folder + "/" + config_name;
  for (const std::string& path : {file, folder.empty() ? std::string() : in_folder})
    if (!source && !path.empty() && (path == file || is_there(path)))
      source = without_mark(read_text(path)), parts->path = path;
  if (const auto config = folder.empty() ? std::nullopt : read_text_if_there(config_path)) {
    require_utf8(*config, config_path);
    const Json json = read_json(*config, config_path);
    const JsonView view(json, config_path + ": ");
    for (const auto& [name, value] : view.members())
      if (name.ends_with("_token") && (value.is_string() || value.is_object()))
        parts->special_tokens.emplace_back(name, token_text(view.at(name)));
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

std::string ChatTemplate::prompt(const Json& messages, const Json& line, const std::string& place) const {
  return parts_->render(messages_of(messages, place), variables_of(line, place), true, place).text;
}

// If the template marks the text of the assistant ({% generation %}), the marks count. Otherwise TurnFinder
// finds it.
ChatTemplate::Text ChatTemplate::conversation(const Json& messages, const Json& line,
                                              const std::string& place, size_t first,
                                              const IsBeyond& is_beyond,
                                              const std::vector<bool>& masked) const {
  const List all = messages_of(messages, place);
  const Members variables = variables_of(line, place);
  Rendered whole = parts_->render(all, variables, false, place);
  Text result{std::move(whole.text), std::move(whole.generated), whole.work};
  const uint64_t most_work = most_work_for_turns + most_renderings * whole.work;
  const auto render = [&](List list, bool asks) {
    Rendered rendered = parts_->render(std::move(list), variables, asks, place);
    if ((result.work += rendered.work) > most_work)
      throw Failure(
          exit_failed,
          fmt::format(
              "{}: it takes too long to find the assistant's messages among {} messages as {} writes them; "
              "split the conversation, or put {{% generation %}} around the assistant's in the template",
              place, all.size(), parts_->path));
    return std::move(rendered.text);
  };
  TurnFinder finder(all, result.text, render, place, parts_->path);
  const bool is_marked = !result.learned.empty();  // by {% generation %}
  bool has_masks = std::find(masked.begin(), masked.end(), true) != masked.end();
  if (is_marked && has_masks && take_out(result.learned, result.text, all, masked, place)) has_masks = false;
  std::vector<Turn> turns;
  for (size_t i = first; i < all.size(); ++i) {
    if (!is_assistant(all[i])) continue;
    const bool is_masked = i < masked.size() && masked[i];
    if (is_masked && !is_marked) continue;
    if (is_marked && !has_masks) {
      finder.check_written(i);
      continue;
    }
    const std::optional<Range> range = finder.locate(i);
    if (!range) continue;
    turns.push_back({*range, is_masked});
    if (is_beyond && !is_marked && is_beyond(result.text, range->first)) break;
  }
  if (!is_marked)
    for (const Turn& turn : turns) result.learned.push_back(turn.range);
  else if (has_masks && !take_out(result.learned, turns))
    throw Failure(exit_failed, fmt::format("{}: {} marks the assistant's messages in one piece, and some of "
                                           "them are not learned: put {{% generation %}} around each message",
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
