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

namespace command {
namespace {

struct Example {
  std::vector<int32_t> tokens;
  size_t learned_from;
};

Example of_ids(const JsonView& prompt, const JsonView& rest, const Tokenization& tokenization) {
  Example example{};
  for (const JsonView* part : {&prompt, &rest}) {
    example.learned_from = example.tokens.size();
    if (part->is_null()) continue;
    for (const JsonView& id : part->elements()) example.tokens.push_back(static_cast<int32_t>(id.whole(tokenization.vocabulary() - 1)));
  }
  return example;
}

// A token that has letters of both is one of the completion: so it will be asked for, too.
Example of_text(const JsonView& prompt, const JsonView& rest, const Tokenization& tokenization) {
  if (prompt.is_null()) return {tokenization.encode(rest.text(), rest.place()), 0};
  const std::vector<int32_t> begin = tokenization.encode(prompt.text(), prompt.place());
  Example example{tokenization.encode(prompt.text() + rest.text(), rest.place()), 0};
  while (example.learned_from < std::min(begin.size(), example.tokens.size()) && begin[example.learned_from] == example.tokens[example.learned_from])
    ++example.learned_from;
  return example;
}

Example parse(std::string_view line, const std::string& place, const Tokenization& tokenization) {
  const JsonValue value = read_json(line, place);
  const JsonView object(value, place + ": ");
  const JsonView text = object.at("text"), prompt = object.at("prompt"), completion = object.at("completion");
  if (text.is_null() != !(prompt.is_null() && completion.is_null()) || prompt.is_null() != completion.is_null()) {
    std::vector<std::string> keys;
    for (const JsonMember& member : object.members())
      if (member.value.kind != JsonValue::Kind::null) keys.push_back('"' + member.key + '"');
    throw Failure(exit_failed, fmt::format("{}: expected \"prompt\" and \"completion\", or \"text\", found {}", place,
                                           keys.empty() ? "none of them" : fmt::format("{}", fmt::join(keys, ", "))));
  }
  const JsonView& rest = text.is_null() ? completion : text;
  const Example example = (tokenization.kind() == Tokenization::Kind::ids ? of_ids : of_text)(prompt, rest, tokenization);
  if (example.tokens.size() == example.learned_from) throw Failure(exit_failed, fmt::format("{}: expected at least one token, found none", rest.place()));
  return example;
}

// Fisher and Yates, by splitmix64.
void shuffle(std::vector<Example>& list) {
  uint64_t state = 1337;
  for (size_t i = list.size(); i > 1; --i) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    std::swap(list[i - 1], list[(z ^ (z >> 31)) % i]);
  }
}

}  // namespace

bool holds_examples(const std::string& path) {
  constexpr std::string_view suffix = ".jsonl";
  return path.size() >= suffix.size() && std::equal(suffix.begin(), suffix.end(), path.end() - suffix.size(), [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
}

Examples read_examples(const std::string& path, const Tokenization& tokenization, int32_t end, uint64_t sequence) {
  const std::string content = read_text(path);
  const std::string_view mark = "\xEF\xBB\xBF";   // of UTF-8, which some editors put in front
  std::vector<Example> list;
  uint64_t number = 0;
  for (size_t begin = content.starts_with(mark) ? mark.size() : 0; begin < content.size(); ++number) {
    const size_t line_end = std::min(content.find('\n', begin), content.size());
    const std::string_view line = std::string_view(content).substr(begin, line_end - begin);
    begin = line_end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    list.push_back(parse(line, fmt::format("{}, line {}", path, number + 1), tokenization));
    if (list.back().tokens.back() != end) list.back().tokens.push_back(end);
  }
  if (list.empty()) throw Failure(exit_failed, fmt::format("{}: expected a line for each example, found none", path));
  shuffle(list);
  Examples all;
  ExampleCounts& counts = all.counts;
  counts.examples = list.size();
  for (const Example& example : list) {
    counts.longer += example.tokens.size() > sequence + 1;
    counts.unlearned += example.learned_from > sequence;
    for (size_t i = 0; i < example.tokens.size(); ++i) {
      const bool learned = i > 0 && i >= example.learned_from;
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
