#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/failure.h"
#include "tokenizer/base64.h"
#include "tokenizer/description_parts.h"

namespace command {
namespace {

constexpr std::string_view word_mark = "\u2581";  // U+2581, which "Metaspace" uses for spaces

// GPT-2's pattern, by which ByteLevel splits.
constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

SearchedText searched_of(const JsonView& pattern) {
  if (const JsonView regex = pattern.at("Regex"); !regex.is_null()) return {regex.text(), true};
  return {pattern.at("String").text(), false};
}

std::string read_charsmap(const JsonView& charsmap) {
  std::optional<std::string> bytes = bytes_of_base64(charsmap.text());
  if (!bytes) charsmap.fail("base64");
  return std::move(*bytes);
}

CutStep::Prefix read_prefix(const JsonView& step) {
  const JsonView scheme = step.at("prepend_scheme");  // since 2024; older files have a flag
  const bool adds_prefix_space = step.at("add_prefix_space").flag_or(true);
  if (scheme.is_null()) return adds_prefix_space ? CutStep::Prefix::always : CutStep::Prefix::never;
  if (scheme.text() == "never") return CutStep::Prefix::never;
  if (scheme.text() != "first" && scheme.text() != "always")
    scheme.fail("\"first\", \"always\" or \"never\"");
  if (!adds_prefix_space) scheme.fail("\"never\", as add_prefix_space is false");
  return scheme.text() == "first" ? CutStep::Prefix::first : CutStep::Prefix::always;
}

CutStep::Behavior read_behavior(const JsonView& behavior) {
  using enum CutStep::Behavior;
  static const std::map<std::string_view, CutStep::Behavior> behaviors{
      {"Removed", removed},
      {"Isolated", isolated},
      {"MergedWithPrevious", merged_with_previous},
      {"MergedWithNext", merged_with_next},
      {"Contiguous", contiguous}};
  const auto found = behaviors.find(behavior.text());
  if (found == behaviors.end()) refuse(behavior, behavior.text());
  return found->second;
}

CutStep read_split(const JsonView& step) {
  CutStep cut{CutStep::Kind::matches, read_behavior(step.at("behavior")), searched_of(step.at("pattern"))};
  cut.inverted = step.at("invert").flag_or(false);
  return cut;
}

CutStep read_bytes(const JsonView& step) {
  CutStep bytes{CutStep::Kind::bytes};
  bytes.prefix = step.at("add_prefix_space").flag_or(true) ? CutStep::Prefix::always : CutStep::Prefix::never;
  if (step.at("use_regex").flag_or(true)) bytes.searched = {std::string(gpt2_pattern), true};
  return bytes;
}

CutStep read_words(const JsonView& step) {
  CutStep words{CutStep::Kind::words,
                CutStep::Behavior::merged_with_next,
                {step.at("replacement").text_or(word_mark), false}};
  words.prefix = read_prefix(step);
  if (!step.at("split").flag_or(true)) words.behavior = CutStep::Behavior::contiguous;
  return words;
}

}  // namespace

void add_bert_steps(const BertNormalizing& how, std::vector<NormalStep>& out) {
  using Kind = NormalStep::Kind;
  if (how.cleans) out.push_back({Kind::clean});
  if (how.spaces_ideographs) out.push_back({Kind::spaces_around_ideographs});
  if (how.strips_accents) {
    out.push_back({Kind::nfd});
    out.push_back({Kind::drop_nonspacing});
  }
  if (how.lowers) out.push_back({Kind::lowercase});
}

void read_normal(const JsonView& step, std::vector<NormalStep>& out) {
  using Kind = NormalStep::Kind;
  static const std::map<std::string_view, Kind> bare{{"NFC", Kind::nfc},
                                                     {"NFD", Kind::nfd},
                                                     {"NFKC", Kind::nfkc},
                                                     {"NFKD", Kind::nfkd},
                                                     {"Lowercase", Kind::lowercase},
                                                     {"StripAccents", Kind::drop_marks}};
  const std::string type = type_of(step);
  if (const auto found = bare.find(type); found != bare.end()) {
    out.push_back({found->second});
  } else if (type == "BertNormalizer") {
    const bool lowers = step.at("lowercase").flag_or(true);
    add_bert_steps({step.at("clean_text").flag_or(true), step.at("handle_chinese_chars").flag_or(true),
                    step.at("strip_accents").flag_or(lowers), lowers},
                   out);
  } else if (type == "Strip") {
    if (step.at("strip_left").flag_or(false)) out.push_back({Kind::strip_left});
    if (step.at("strip_right").flag_or(false)) out.push_back({Kind::strip_right});
  } else if (type == "Precompiled") {
    const JsonView charsmap = step.at("precompiled_charsmap");
    std::string bytes = read_charsmap(charsmap);
    out.push_back({Kind::charsmap, {charsmap.place(), false}, std::move(bytes)});
  } else if (type == "Prepend") {
    out.push_back({Kind::prepend, {}, step.at("prepend").text()});
  } else if (type == "Replace") {
    out.push_back({Kind::replace, searched_of(step.at("pattern")), step.at("content").text()});
  } else {
    refuse(step, type);
  }
}

void add_bert_cuts(std::vector<CutStep>& out) {
  out.push_back({CutStep::Kind::spaces, CutStep::Behavior::removed});
  out.push_back({CutStep::Kind::punctuation});
}

void read_cut(const JsonView& step, std::vector<CutStep>& out) {
  using Kind = CutStep::Kind;
  const std::string type = type_of(step);
  if (!out.empty() && out.back().kind == Kind::bytes)
    throw Failure(exit_failed, fmt::format("{}: expected \"ByteLevel\" to be the last", step.place()));
  if (type == "Split") out.push_back(read_split(step));
  else if (type == "Digits")
    out.push_back({Kind::digits, step.at("individual_digits").flag_or(false)
                                     ? CutStep::Behavior::isolated
                                     : CutStep::Behavior::contiguous});
  else if (type == "ByteLevel") out.push_back(read_bytes(step));
  else if (type == "Metaspace") out.push_back(read_words(step));
  else if (type == "BertPreTokenizer") add_bert_cuts(out);
  else if (type == "Whitespace") out.push_back({Kind::words_or_signs});
  else if (type == "WhitespaceSplit") out.push_back({Kind::spaces, CutStep::Behavior::removed});
  else if (type == "Punctuation")
    out.push_back({Kind::punctuation, step.at("behavior").is_null() ? CutStep::Behavior::isolated
                                                                    : read_behavior(step.at("behavior"))});
  else refuse(step, type);
}

void add_piece_steps(const std::string& prefix, bool cleans_up, std::vector<TextStep>& out) {
  out.push_back({TextStep::Kind::pieces, prefix});
  if (cleans_up) out.push_back({TextStep::Kind::cleanup});
}

void read_text_step(const JsonView& step, std::vector<TextStep>& out) {
  using Kind = TextStep::Kind;
  const std::string type = type_of(step);
  if (type == "Replace") {
    const SearchedText searched = searched_of(step.at("pattern"));
    if (searched.is_pattern) refuse(step.at("pattern"), "Regex");
    out.push_back({Kind::replace, searched.text, step.at("content").text()});
  } else if (type == "ByteFallback") {
    out.push_back({Kind::bytes});
  } else if (type == "Strip") {
    if (step.at("stop").integer(largest_id) != 0) refuse(step.at("stop"), "stop");
    if (step.at("content").text().empty()) step.at("content").fail("a character");
    out.push_back({Kind::strip, step.at("content").text(), {}, step.at("start").integer(largest_id)});
  } else if (type == "Metaspace") {
    out.push_back({Kind::words, step.at("replacement").text_or(word_mark), " ", 0,
                   read_prefix(step) != CutStep::Prefix::never});
  } else if (type == "WordPiece") {
    add_piece_steps(step.at("prefix").text_or("##"), step.at("cleanup").flag_or(true), out);
  } else {
    refuse(step, type);
  }
}

}  // namespace command
