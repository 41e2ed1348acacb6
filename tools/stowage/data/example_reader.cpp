#include "data/example_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/failure.h"
#include "base/utf8.h"
#include "data/label_words.h"
#include "data/loss_marks.h"

namespace command {
namespace {

using Range = std::pair<size_t, size_t>;  // half-open

Json::Object message_of(std::string_view role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

bool is_empty(std::string_view text) { return without_blanks(text).empty(); }

// Whether one of these messages is the assistant's and is not empty: it has a text or a call of a tool.
bool says_something(const JsonView& messages) {
  for (const JsonView& message : messages.elements()) {
    if (message.at("role").text() != "assistant") continue;
    for (const char* key : {"tool_calls", "function_call", "refusal"})
      if (const Json& more = message.at(key).raw();
          !more.elements().empty() || !more.members().empty() || !text_of(more).empty())
        return true;
    const JsonView content = message.at("content");
    const auto says = [](const JsonView& text) {
      return !text.is_null() && !(text.is_text() && is_empty(text.text()));
    };  // values of other kinds count, and are refused later
    if (!content.is_array() && says(content)) return true;
    if (!content.is_array()) continue;
    for (const JsonView& part : content.elements())
      if (!part.raw().is_object() || says(part.at("text"))) return true;
  }
  return false;
}

// Whether the author of each message has taken it out of the loss. Throws if a mark asks to learn a message
// that is not the assistant's.
std::vector<bool> masked_messages(const JsonView& messages) {
  std::vector<bool> masked;
  for (const JsonView& message : messages.elements()) {
    message.members();  // throws if it is not an object
    const std::string& role = message.at("role").text();
    const std::optional<bool> mark = loss_mark(message, Marked::message);
    if (mark == true && role != "assistant")
      message.fail(
          fmt::format("no mark that a message of \"{}\" is learned: only the assistant's messages are; leave "
                      "the mark out",
                      shortened(role)));
    masked.push_back(mark == false);
  }
  return masked;
}

// Why an example is left out: nothing if something in it is learned.
std::optional<LeftOut> reason(const Example& example, const std::vector<bool>& masked) {
  if (!example.learned.empty()) return std::nullopt;
  return std::find(masked.begin(), masked.end(), true) == masked.end() ? LeftOut::empty : LeftOut::marked;
}

// Turns ShareGPT's conversations, {"from": "human", "value": …}, into messages. Keeps their other members.
Json::Array messages_of(const JsonView& conversations, const JsonView& system) {
  constexpr std::pair<std::string_view, std::string_view> roles[] = {{"human", "user"},
                                                                     {"user", "user"},
                                                                     {"gpt", "assistant"},
                                                                     {"assistant", "assistant"},
                                                                     {"system", "system"}};
  Json::Array messages;
  if (!system.is_null() && !system.text().empty()) messages.emplace_back(message_of("system", system.text()));
  for (const JsonView& one : conversations.elements()) {
    const std::string& from = one.at("from").text();
    const auto role =
        std::find_if(std::begin(roles), std::end(roles), [&](const auto& r) { return r.first == from; });
    if (role == std::end(roles))
      one.at("from").fail(fmt::format("human, gpt or system, found \"{}\"", shortened(from)));
    Json::Object message = message_of(role->second, one.at("value").text());
    for (const auto& [name, value] : one.members())
      if (name != "from" && name != "value" && name != "role" && name != "content")
        message.emplace_back(name, value);
    messages.emplace_back(std::move(message));
  }
  return messages;
}

// The number of a text's tokens before a place in it. `before` are the tokens of the text up to that place. A
// token that spans the place counts as after it, because a prompt that ends at the place does not contain it.
size_t tokens_before(const std::vector<int32_t>& whole, const std::vector<int32_t>& before) {
  return static_cast<size_t>(std::mismatch(whole.begin(), whole.end(), before.begin(), before.end()).first -
                             whole.begin());
}

[[noreturn]] void fail_of_members(std::string_view line, const std::string& place,
                                  const std::string& expected) {
  std::vector<std::string> keys;
  for (const auto& [name, kind] : read_outline(line, place).members)
    if (kind != Json::Kind::null) keys.push_back('"' + shortened(name) + '"');
  throw Failure(exit_failed,
                fmt::format("{}: expected {}, found {}", place, expected,
                            keys.empty() ? "none of them" : fmt::format("{}", fmt::join(keys, ", "))));
}

}  // namespace

// Skips all members that are not used: they may be large.
Json ExampleReader::read(std::string_view line, const std::string& place) const {
  constexpr std::string_view used[] = {
      "prompt", "completion", "messages", "conversations", "system",
      "chosen", "rejected",   "label",    "tools",         "chat_template_kwargs"};
  Json object = read_object(line, place, [&](std::string_view key) {
    return key == text_member_ || is_loss_mark(key) ||
           std::find(std::begin(used), std::end(used), key) != std::end(used);
  });
  JsonView(object, place).members();  // throws if it is not an object
  return object;
}

Example ExampleReader::of_ids(const JsonView& prompt, const JsonView& rest) const {
  Example example;
  size_t learned_from = 0;
  for (const JsonView* part : {&prompt, &rest}) {
    learned_from = example.tokens.size();
    if (part->is_null()) continue;
    for (const JsonView& id : part->elements())
      example.tokens.push_back(static_cast<int32_t>(id.integer(tokenization_.vocabulary() - 1)));
  }
  example.learned = {{learned_from, example.tokens.size()}};
  return example;
}

Example ExampleReader::of_text(const JsonView& prompt, const JsonView& rest) const {
  const std::optional<LeftOut> left_out =
      is_empty(rest.text()) ? std::optional(LeftOut::empty) : std::nullopt;
  if (prompt.is_null()) {
    std::vector<int32_t> tokens = tokenization_.encode(rest.text(), rest.place());
    const size_t count = tokens.size();
    return {std::move(tokens), {{0, count}}, left_out};
  }
  const std::vector<int32_t> begin = tokenization_.encode(prompt.text(), prompt.place());
  Example example{tokenization_.encode(prompt.text() + rest.text(), rest.place()), {}, left_out};
  example.learned = {{tokens_before(example.tokens, begin), example.tokens.size()}};
  return example;
}

// Encodes the text again only after the place has doubled, because encoding takes time proportional to the
// place.
chat::ChatTemplate::IsBeyond ExampleReader::beyond_reach(const std::string& place) const {
  return [this, place, next = reach_](std::string_view text, size_t byte) mutable {
    if (byte <= next) return false;  // a token has at least one byte
    next = 2 * byte;
    return tokens_before(tokenization_.encode(std::string(text), place, true),
                         tokenization_.encode(std::string(text.substr(0, byte)), place, true)) > reach_;
  };
}

Example ExampleReader::of_rendered(const chat::ChatTemplate::Text& conversation,
                                   const std::string& place) const {
  PlacedTokens whole = tokenization_.encode_placed(conversation.text, place);
  const auto token_at = [&](size_t byte) {
    return tokenization_.tokens_up_to(byte, whole, conversation.text, place);
  };
  std::vector<Range> learned;
  for (const Range& bytes : conversation.learned) {
    const Range tokens{token_at(bytes.first), token_at(bytes.second)};
    if (tokens.first < tokens.second) learned.push_back(tokens);
    if (tokens.first > reach_) break;  // all later ones are past it too
  }
  return {std::move(whole.tokens), std::move(learned)};
}

Example ExampleReader::of_conversation(const Json& line, const JsonView& messages,
                                       const std::string& place) const {
  const chat::ChatTemplate& chat_template = chat_template_(place);
  const std::vector<bool> masked = masked_messages(messages);
  if (!says_something(messages)) return {{}, {}, LeftOut::empty};
  Example example = of_rendered(
      chat_template.conversation(messages.raw(), line, place, 0, beyond_reach(place), masked), place);
  example.left_out = reason(example, masked);
  return example;
}

// Messages of a prompt and of its completion. Only the completion is learned.
Example ExampleReader::of_messages(const Json& line, const JsonView& prompt, const JsonView& completion,
                                   const std::string& place) const {
  const chat::ChatTemplate& chat_template = chat_template_(place);
  std::vector<bool> masked(masked_messages(prompt).size());  // the prompt is never learned
  const std::vector<bool> masked_of_completion = masked_messages(completion);
  masked.insert(masked.end(), masked_of_completion.begin(), masked_of_completion.end());
  if (!says_something(completion)) return {{}, {}, LeftOut::empty};
  Json::Array all = prompt.raw_elements();
  all.insert(all.end(), completion.raw_elements().begin(), completion.raw_elements().end());
  chat::ChatTemplate::Text conversation = chat_template.conversation(
      std::move(all), line, place, prompt.raw_elements().size(), beyond_reach(place), masked);
  const std::string before = chat_template.prompt(prompt.raw(), line, prompt.place());
  const auto begin = static_cast<size_t>(
      std::mismatch(before.begin(), before.end(), conversation.text.begin(), conversation.text.end()).first -
      before.begin());
  for (Range& bytes : conversation.learned) bytes.first = std::max(bytes.first, begin);
  std::erase_if(conversation.learned, [](const Range& bytes) { return bytes.first >= bytes.second; });
  Example example = of_rendered(conversation, place);
  example.left_out = reason(example, masked);
  return example;
}

Example ExampleReader::example(std::string_view text_of_line, const std::string& place) const {
  const Json value = read(text_of_line, place);
  const JsonView object(value, place + ": ");
  const JsonView text = object.at(text_member_), prompt = object.at("prompt"),
                 completion = object.at("completion"), messages = object.at("messages"),
                 conversations = object.at("conversations");
  if (!text.is_null() + !messages.is_null() + !conversations.is_null() +
              !(prompt.is_null() && completion.is_null()) !=
          1 ||
      prompt.is_null() != completion.is_null())
    fail_of_members(text_of_line, place,
                    fmt::format("\"prompt\" and \"completion\", \"messages\", or \"{}\"", text_member_));
  if (const JsonView label = object.at("label"); !completion.is_null() && label.raw() == Json(false))
    label.fail(
        "an answer to learn, found one that was judged bad (KTO), which is not learned; pairs have "
        "\"chosen\" and \"rejected\"");
  const bool is_learned = loss_mark(object, Marked::example).value_or(true);
  const auto marked = [&](Example example) {
    if (!is_learned) example.left_out = LeftOut::marked;
    return example;
  };
  if (!messages.is_null() || !conversations.is_null()) {
    const std::string& at = messages.is_null() ? conversations.place() : messages.place();
    if (has_ids())
      throw Failure(exit_failed, fmt::format("{}: is for text; there is no tokenizer (--tokenizer)", at));
    const Json list =
        messages.is_null() ? Json(messages_of(conversations, object.at("system"))) : messages.raw();
    return marked(of_conversation(value, JsonView(list, at), at));
  }
  if (!has_ids() && prompt.is_array())
    return marked(of_messages(value, prompt, completion, completion.place()));
  return marked(ended(has_ids() ? of_ids(prompt, text.is_null() ? completion : text)
                                : of_text(prompt, text.is_null() ? completion : text)));
}

ExampleReader::Pair ExampleReader::pair(std::string_view text_of_line, const std::string& place) const {
  const Json value = read(text_of_line, place);
  const JsonView object(value, place + ": ");
  const JsonView prompt = object.at("prompt"), answers[2] = {object.at("chosen"), object.at("rejected")};
  const std::string expected = "\"chosen\" and \"rejected\", and the question that they answer as \"prompt\"";
  if (answers[0].is_null() || answers[1].is_null()) fail_of_members(text_of_line, place, expected);
  Pair pair{{}, !prompt.is_null()};
  if (!has_ids() && answers[0].is_array()) {
    std::array<Json::Array, 2> replies{answers[0].raw_elements(), answers[1].raw_elements()};
    Json::Array prompt_messages;
    if (prompt.is_array()) {
      prompt_messages = prompt.raw_elements();
    } else {  // the prompt is the common beginning of both answers, without the last message of either
      const auto begin_of = [](const Json::Array& messages) {
        return messages.end() - (messages.empty() ? 0 : 1);
      };
      const auto shared = std::mismatch(replies[0].cbegin(), begin_of(replies[0]), replies[1].cbegin(),
                                        begin_of(replies[1]), is_equal)
                              .first -
                          replies[0].cbegin();
      prompt_messages.assign(replies[0].begin(), replies[0].begin() + shared);
      for (Json::Array& messages : replies) messages.erase(messages.begin(), messages.begin() + shared);
      if (prompt_messages.empty() && !prompt.is_null())
        prompt_messages.emplace_back(message_of("user", prompt.text()));
      if (prompt_messages.empty()) answers[0].fail("messages that begin with those of rejected, or a prompt");
    }
    const Json before(std::move(prompt_messages));
    for (size_t k = 0; k < 2; ++k) {
      const Json messages(std::move(replies[k]));
      pair.answers[k] = of_messages(value, JsonView(before, prompt.place()),
                                    JsonView(messages, answers[k].place()), answers[k].place());
    }
    return left_out(std::move(pair), object);
  }
  for (size_t k = 0; k < 2; ++k)
    pair.answers[k] = has_ids() ? of_ids(prompt, answers[k]) : of_text(prompt, answers[k]);
  if (prompt.is_null()) {
    const size_t shared = tokens_before(pair.answers[0].tokens, pair.answers[1].tokens);
    if (shared == 0) fail_of_members(text_of_line, place, expected + " or in front of both");
    for (Example& answer : pair.answers) answer.learned = {{shared, answer.tokens.size()}};
  }
  for (Example& answer : pair.answers) answer = ended(std::move(answer));
  return left_out(std::move(pair), object);
}

ExampleReader::Pair ExampleReader::left_out(Pair pair, const JsonView& line) {
  if (!loss_mark(line, Marked::example).value_or(true)) pair.left_out = LeftOut::marked;
  for (const Example& answer : pair.answers)
    if (!pair.left_out) pair.left_out = answer.left_out;
  return pair;
}

Example ExampleReader::ended(Example example) const {
  if (!example.left_out && example.learned.back().first == example.tokens.size())
    example.left_out = LeftOut::empty;
  if (example.tokens.empty() || example.tokens.back() != end_) example.tokens.push_back(end_);
  example.learned.back().second = example.tokens.size();
  return example;
}

}  // namespace command
