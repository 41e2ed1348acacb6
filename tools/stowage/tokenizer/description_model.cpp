#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tokenizer/description_parts.h"

namespace command {
namespace {

// Parses a score as the library does: it keeps the digits that fit into 64 bits, then divides or multiplies
// by a power of ten. The result may differ from the nearest double in the last bit, and that bit may decide
// between two paths.
double score_of(const JsonView& part) {
  if (!is_number(part.raw())) part.fail("a number");
  std::string_view text = text_of(part.raw());
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  uint64_t digits = 0;
  int64_t exponent = 0;
  bool in_fraction = false, is_full = false;
  size_t at = 0;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.') {
      in_fraction = true;
      continue;
    }
    const auto digit = static_cast<uint64_t>(text[at] - '0');
    is_full = is_full || digits > (UINT64_MAX - digit) / 10;
    if (!is_full) digits = digits * 10 + digit;
    if (is_full ? !in_fraction : in_fraction) exponent += is_full ? 1 : -1;
  }
  if (at < text.size()) {
    const long written = std::strtol(std::string(text.substr(at + 1)).c_str(), nullptr, 10);
    if (written < -100000 || written > 100000) part.fail("a finite number");
    exponent += written;
  }
  double score = static_cast<double>(digits);
  constexpr int64_t largest_power = 308;  // 1e308 is a double
  const auto power_of = [](int64_t tens) {
    return std::strtod(("1e" + std::to_string(tens)).c_str(), nullptr);
  };
  for (; exponent < -largest_power && score != 0; exponent += largest_power) score /= power_of(largest_power);
  if (score != 0 && exponent > largest_power) part.fail("a finite number");
  if (score != 0) score = exponent < 0 ? score / power_of(-exponent) : score * power_of(exponent);
  if (!std::isfinite(score)) part.fail("a finite number");
  return is_negative ? -score : score;
}

void read_vocabulary(const JsonView& vocabulary, TokenizerDescription& out) {
  for (const auto& [token, id] : vocabulary.members())
    out.vocabulary.emplace_back(token, id_of(JsonView(id, vocabulary.place())));
}

BytePairsDescription read_byte_pairs(const JsonView& model) {
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    if (const JsonView part = model.at(key); !part.is_null() && !(part.is_text() && part.text().empty()))
      refuse(part, key);
  BytePairsDescription out;
  if (const JsonView unknown = model.at("unk_token"); !unknown.is_null()) out.unknown = unknown.text();
  out.fuses_unknown = model.at("fuse_unk").flag_or(false);
  out.byte_fallback = model.at("byte_fallback").flag_or(false);
  out.ignores_merges = model.at("ignore_merges").flag_or(false);
  const JsonView merges = model.at("merges");
  // "a b", or since 2024 ["a", "b"].
  for (const Json& merge : merges.raw_elements()) {
    const Json::Array& pair = merge.elements();
    const std::string_view text = text_of(merge);
    const size_t space = text.find(' ');
    if (pair.size() == 2)
      out.merges.emplace_back(JsonView(pair[0], merges.place()).text(),
                              JsonView(pair[1], merges.place()).text());
    else if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos)
      out.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    else merges.fail("pairs of tokens");
  }
  return out;
}

WordPiecesDescription read_word_pieces(const JsonView& model) {
  return {model.at("unk_token").text(), model.at("continuing_subword_prefix").text(),
          model.at("max_input_chars_per_word").integer(UINT64_MAX)};
}

// The library ignores "fuse_unk" here and always joins unknown characters.
UnigramDescription read_unigram(const JsonView& model, TokenizerDescription& out) {
  UnigramDescription unigram;
  const JsonView vocabulary = model.at("vocab");
  for (const JsonView& piece : vocabulary.elements()) {
    const std::vector<JsonView> parts = piece.elements();
    if (parts.size() != 2) piece.fail("a token and its score");
    out.vocabulary.emplace_back(parts[0].text(), static_cast<int32_t>(out.vocabulary.size()));
    unigram.scores.push_back(score_of(parts[1]));
  }
  unigram.byte_fallback = model.at("byte_fallback").flag_or(false);
  if (const JsonView unknown = model.at("unk_id"); !unknown.is_null()) {
    if (out.vocabulary.empty()) vocabulary.fail("at least one token");
    unigram.unknown = static_cast<int32_t>(unknown.integer(out.vocabulary.size() - 1));
  }
  return unigram;
}

// Older files do not name the type.
std::string type_of_model(const JsonView& model) {
  if (const JsonView type = model.at("type"); !type.is_null()) return type.text();
  if (!model.at("max_input_chars_per_word").is_null()) return "WordPiece";
  return model.at("vocab").is_array() ? "Unigram" : "BPE";
}

}  // namespace

void read_model(const JsonView& model, TokenizerDescription& out) {
  const std::string type = type_of_model(model);
  if (type == "Unigram") {
    out.model = read_unigram(model, out);
    return;
  }
  if (type != "WordPiece" && type != "BPE") refuse(model, type);
  read_vocabulary(model.at("vocab"), out);
  if (type == "WordPiece") out.model = read_word_pieces(model);
  else out.model = read_byte_pairs(model);
}

}  // namespace command
