// Encodes texts for tests: `encode_texts TOKENIZER` reads one JSON object a line, {"text": …, "second": …} or {"words": […]}, with the options
// "special", "max_tokens" and "truncation". It writes the encoding, or the error, as one JSON object a line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "failure.h"
#include "files.h"
#include "json_value.h"
#include "tokenizer/tokenizer.h"

using namespace command;

namespace {

EncodeOptions options_of(const JsonView& asked) {
  using enum Truncation;
  static const std::map<std::string, Truncation> ways{{"longest_first", longest_first}, {"only_first", only_first}, {"only_second", only_second}};
  EncodeOptions options;
  options.special_tokens = asked.at("special").flag_or(true);
  if (!asked.at("max_tokens").is_null()) options.max_tokens = asked.at("max_tokens").whole(UINT64_MAX);
  options.truncation = ways.at(asked.at("truncation").text_or("longest_first"));
  return options;
}

Encoding encode(const Tokenizer& tokenizer, const JsonView& asked) {
  const EncodeOptions options = options_of(asked);
  if (const JsonView words = asked.at("words"); !words.is_null()) {
    std::vector<std::string> texts;
    for (const JsonView& word : words.elements()) texts.push_back(word.text());
    return tokenizer.encode_words(texts, "words", options);
  }
  const JsonView second = asked.at("second");
  return tokenizer.encode(asked.at("text").text(), second.is_null() ? std::nullopt : std::optional<std::string_view>(second.text()), "text", options);
}

std::string answer(const Tokenizer& tokenizer, const std::string& line) {
  try {
    const JsonValue value = read_json(line, "line");
    const Encoding encoding = encode(tokenizer, JsonView(value, "line: "));
    return fmt::format(R"({{"tokens": [{}], "types": [{}], "words": [{}], "cut": {}, "text": {}}})", fmt::join(encoding.tokens, ","), fmt::join(encoding.token_types, ","),
                       fmt::join(encoding.word_ids, ","), encoding.is_truncated, json_quoted(tokenizer.decode(encoding.tokens, true)));
  } catch (const Failure& failure) {
    return fmt::format(R"({{"error": {}}})", json_quoted(failure.what()));
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return exit_usage;
  try {
    const Tokenizer tokenizer(words[1]);
    for (std::string line; std::getline(std::cin, line);) std::cout << answer(tokenizer, line) << '\n';
  } catch (const Failure& failure) {
    std::cerr << failure.what() << '\n';
    return failure.exit_code;
  }
}
