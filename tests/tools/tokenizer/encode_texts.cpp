// Encodes texts for tests: `encode_texts TOKENIZER` reads one JSON object a line, {"text": …, "second": …} or
// {"words": […]}, with the options "special", "max_tokens" and "truncation"; or {"decode": […]}, tokens; or
// {"ranges": …}, a text. It writes the encoding, the text, the tokens with their bytes in the text, or the
// error, as one JSON object a line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/failure.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "base/json_value.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

using namespace command;

namespace {

EncodeOptions options_of(const JsonView& asked) {
  using enum Truncation;
  static const std::map<std::string, Truncation> ways{
      {"longest_first", longest_first}, {"only_first", only_first}, {"only_second", only_second}};
  EncodeOptions options;
  options.special_tokens = asked.at("special").flag_or(true);
  if (!asked.at("max_tokens").is_null()) options.max_tokens = asked.at("max_tokens").integer(UINT64_MAX);
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
  return tokenizer.encode(asked.at("text").text(),
                          second.is_null() ? std::nullopt : std::optional<std::string_view>(second.text()),
                          "text", options);
}

std::string decode(const Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  Decoding state;
  const std::string text = tokenizer.decode(tokens, state);
  return text + tokenizer.finish(state);
}
// Token by token, as `generate` may do.
std::string decode_slowly(const Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  Decoding state;
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string piece = tokenizer.decode(tokens.subspan(i, 1), state);
    require_utf8(piece, "a piece");
    text += piece;
  }
  return text + tokenizer.finish(state);
}

std::string answer(const Tokenizer& tokenizer, const std::string& line) {
  try {
    const Json value = read_json(line, "line");
    if (const JsonView asked = JsonView(value, "line: ").at("decode"); !asked.is_null()) {
      std::vector<int32_t> tokens;
      for (const JsonView& token : asked.elements())
        tokens.push_back(static_cast<int32_t>(token.integer(INT32_MAX)));
      return fmt::format(R"({{"text": {}, "slowly": {}}})", json_quoted(decode(tokenizer, tokens)),
                         json_quoted(decode_slowly(tokenizer, tokens)));
    }
    if (const JsonView asked = JsonView(value, "line: ").at("ranges"); !asked.is_null()) {
      const RangedTokens ranged = tokenizer.encode_ranged(asked.text(), "text");
      std::vector<std::string> ranges;
      for (const TextRange& range : ranged.ranges)
        ranges.push_back(fmt::format("[{},{}]", range.begin, range.end));
      return fmt::format(R"({{"tokens": [{}], "ranges": [{}]}})", fmt::join(ranged.tokens, ","),
                         fmt::join(ranges, ","));
    }
    const Encoding encoding = encode(tokenizer, JsonView(value, "line: "));
    return fmt::format(R"({{"tokens": [{}], "types": [{}], "words": [{}], "cut": {}, "text": {}}})",
                       fmt::join(encoding.tokens, ","), fmt::join(encoding.token_types, ","),
                       fmt::join(encoding.word_ids, ","), encoding.is_truncated,
                       json_quoted(decode(tokenizer, encoding.tokens)));
  } catch (const Failure& failure) { return fmt::format(R"({{"error": {}}})", json_quoted(failure.what())); }
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
