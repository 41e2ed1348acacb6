#include "examples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stowage.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "failure.h"
#include "files.h"
#include "json_value.h"
#include "lines.h"
#include "shuffle.h"

namespace command {
namespace {

using Range = std::pair<size_t, size_t>;   // begin and end

struct Example {
  std::vector<int32_t> tokens;
  std::vector<Range> learned;     // of tokens, in order
  bool has_end = false;           // so that none has to follow
};

// Conversations as ShareGPT has them, {"from": "human", "value": …}, as messages.
JsonValue messages_of(const JsonView& conversations, const JsonView& system) {
  constexpr std::pair<std::string_view, std::string_view> roles[] = {{"human", "user"}, {"user", "user"}, {"gpt", "assistant"}, {"assistant", "assistant"}, {"system", "system"}};
  JsonValue messages;
  messages.kind = JsonValue::Kind::array;
  const auto say = [&](std::string_view role, const std::string& content) {
    JsonValue message;
    message.kind = JsonValue::Kind::object;
    message.members = {{"role", text_value(std::string(role))}, {"content", text_value(content)}};
    messages.elements.push_back(std::move(message));
  };
  if (!system.is_null() && !system.text().empty()) say("system", system.text());
  for (const JsonView& one : conversations.elements()) {
    const std::string& from = one.at("from").text();
    const auto role = std::find_if(std::begin(roles), std::end(roles), [&](const auto& r) { return r.first == from; });
    if (role == std::end(roles)) one.at("from").fail(fmt::format("human, gpt or system, found \"{}\"", from));
    say(role->second, one.at("value").text());
  }
  return messages;
}

struct Reader {
  const std::string& text_member;
  const Tokenization& tokenization;
  const FindTemplate& chat_template;

  Example of_ids(const JsonView& prompt, const JsonView& rest) const {
    Example example;
    size_t learned_from = 0;
    for (const JsonView* part : {&prompt, &rest}) {
      learned_from = example.tokens.size();
      if (part->is_null()) continue;
      for (const JsonView& id : part->elements()) example.tokens.push_back(static_cast<int32_t>(id.whole(tokenization.vocabulary() - 1)));
    }
    example.learned = {{learned_from, example.tokens.size()}};
    return example;
  }

  // How many of a text's tokens lie before a place in it. One that has letters of both sides lies behind: so it will be asked for, too.
  static size_t tokens_before(const std::vector<int32_t>& whole, const std::vector<int32_t>& before) {
    return static_cast<size_t>(std::mismatch(whole.begin(), whole.end(), before.begin(), before.end()).first - whole.begin());
  }

  Example of_text(const JsonView& prompt, const JsonView& rest) const {
    if (prompt.is_null()) {
      std::vector<int32_t> tokens = tokenization.encode(rest.text(), rest.place());
      const size_t count = tokens.size();
      return {std::move(tokens), {{0, count}}};
    }
    const std::vector<int32_t> begin = tokenization.encode(prompt.text(), prompt.place());
    Example example{tokenization.encode(prompt.text() + rest.text(), rest.place()), {}};
    example.learned = {{tokens_before(example.tokens, begin), example.tokens.size()}};
    return example;
  }

  Example of_conversation(const chat::ChatTemplate::Text& conversation, const std::string& place) const {
    Example example{tokenization.encode(conversation.text, place, true), {}, true};
    const auto token_at = [&](size_t byte) {
      return byte >= conversation.text.size() ? example.tokens.size() : tokens_before(example.tokens, tokenization.encode(conversation.text.substr(0, byte), place, true));
    };
    for (const Range& said : conversation.said)
      if (const Range tokens{token_at(said.first), token_at(said.second)}; tokens.first < tokens.second) example.learned.push_back(tokens);
    if (example.learned.empty()) throw Failure(exit_failed, fmt::format("{}: expected a message of the assistant, found none that says something", place));
    return example;
  }
  // Messages of a prompt, and those of its completion, of which alone is learned.
  Example of_messages(const JsonValue& line, const JsonView& prompt, const JsonView& completion, const std::string& place) const {
    JsonValue asked, all;
    asked.kind = JsonValue::Kind::array;
    asked.elements = prompt.raw_elements();
    all = asked;
    for (const JsonValue& message : completion.raw_elements()) all.elements.push_back(message);
    chat::ChatTemplate::Text conversation = chat_template(place).conversation(all, line, place, asked.elements.size());
    const std::string before = chat_template(place).prompt(asked, line, prompt.place());
    const auto begin = static_cast<size_t>(std::mismatch(before.begin(), before.end(), conversation.text.begin(), conversation.text.end()).first - before.begin());
    for (Range& said : conversation.said) said.first = std::max(said.first, begin);
    std::erase_if(conversation.said, [](const Range& said) { return said.first >= said.second; });
    return of_conversation(conversation, place);
  }

  Example parse(std::string_view text_of_line, const std::string& place) const {
    const JsonValue value = read_json(text_of_line, place);
    const JsonView object(value, place + ": ");
    const JsonView text = object.at(text_member), prompt = object.at("prompt"), completion = object.at("completion"), messages = object.at("messages"), conversations = object.at("conversations");
    if (!text.is_null() + !messages.is_null() + !conversations.is_null() + !(prompt.is_null() && completion.is_null()) != 1 || prompt.is_null() != completion.is_null()) {
      std::vector<std::string> keys;
      for (const JsonMember& member : object.members())
        if (member.value.kind != JsonValue::Kind::null) keys.push_back('"' + member.key + '"');
      throw Failure(exit_failed, fmt::format("{}: expected \"prompt\" and \"completion\", \"messages\", or \"{}\", found {}", place, text_member,
                                             keys.empty() ? "none of them" : fmt::format("{}", fmt::join(keys, ", "))));
    }
    const bool has_ids = tokenization.kind() == Tokenization::Kind::ids;
    if (!messages.is_null() || !conversations.is_null()) {
      const std::string& at = messages.is_null() ? conversations.place() : messages.place();
      if (has_ids) throw Failure(exit_failed, fmt::format("{}: is for text; there is no tokenizer (--tokenizer)", at));
      const JsonValue list = messages.is_null() ? messages_of(conversations, object.at("system")) : messages.raw();
      return of_conversation(chat_template(at).conversation(list, value, at), at);
    }
    if (!has_ids && prompt.is_array()) return of_messages(value, prompt, completion, completion.place());
    const JsonView& rest = text.is_null() ? completion : text;
    const Example example = has_ids ? of_ids(prompt, rest) : of_text(prompt, rest);
    if (example.learned[0].first == example.tokens.size()) throw Failure(exit_failed, fmt::format("{}: expected at least one token, found none", rest.place()));
    return example;
  }
};

}  // namespace

bool holds_examples(const std::string& path) { return is_named(path, ".jsonl"); }

Examples read_examples(const std::string& path, const std::string& text_member, const Tokenization& tokenization, const FindTemplate& chat_template, int32_t end, uint64_t sequence) {
  const std::string content = read_text(path);
  const Reader reader{text_member, tokenization, chat_template};
  std::vector<Example> list;
  for_lines(content, [&](uint64_t number, std::string_view line) {
    list.push_back(reader.parse(line, fmt::format("{}, line {}", path, number)));
    Example& example = list.back();
    if (example.has_end) return true;
    if (example.tokens.back() != end) example.tokens.push_back(end);
    example.learned.back().second = example.tokens.size();
    return true;
  });
  if (list.empty()) throw Failure(exit_failed, fmt::format("{}: expected a line for each example, found none", path));
  shuffle(list);
  Examples all;
  ExampleCounts& counts = all.counts;
  counts.examples = list.size();
  for (const Example& example : list) {
    counts.longer += example.tokens.size() > sequence + 1;
    counts.unlearned += example.learned[0].first > sequence;
    auto range = example.learned.begin();
    for (size_t i = 0; i < example.tokens.size(); ++i) {
      if (range != example.learned.end() && i >= range->second) ++range;
      const bool learned = i > 0 && range != example.learned.end() && i >= range->first;
      counts.learned += learned && i <= sequence;
      all.marks += static_cast<char>((learned ? STW_MARK_TARGET : 0) | (i == 0 ? STW_MARK_BEGIN : 0));
    }
    all.tokens.insert(all.tokens.end(), example.tokens.begin(), example.tokens.end());
  }
  if (counts.learned == 0)
    throw Failure(exit_failed, fmt::format("{}: nothing is learned: every completion begins behind the {} tokens of a sample; use a longer --seq", path, sequence));
  return all;
}

}  // namespace command
