// What a tokenizer.json says, of those whose model is byte-pair encoding: the format of Hugging Face's tokenizers library.
// Source: https://huggingface.co/docs/tokenizers/components
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace command {

// A token that is found in the text itself, before anything else happens to it.
struct AddedToken {
  int32_t id;
  std::string content;
  bool single_word;                  // not inside of a word
  bool takes_left, takes_right;      // white space beside it
  bool normalized;                   // is found in the normalized text
  bool special;                      // no text
};

// What is looked for: a regular expression, or itself.
struct SearchedText {
  std::string text;
  bool is_pattern;
};

struct NormalStep {
  enum class Kind { nfc, nfd, nfkc, nfkd, prepend, replace } kind;
  SearchedText searched = {};   // replace
  std::string content = {};     // prepend, replace
};

struct CutStep {
  // bytes: from here on text is bytes, of which tokens are made; the last step. words: a space is a character of its own that begins
  // a word ("Metaspace").
  enum class Kind { matches, digits, bytes, words } kind;
  enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous } behavior = Behavior::isolated;
  SearchedText searched = {};     // matches; words: the character
  bool inverted = false;          // what lies between the matches is a match
  enum class Prefix { never, first, always } prefix = Prefix::never;   // bytes, words: a space before a piece that has none
};

// How tokens become text where they are not bytes.
struct TextStep {
  enum class Kind { replace, bytes, strip, words } kind;   // bytes: <0x0A> is a byte
  std::string searched = {}, content = {};
  uint64_t start = 0;    // strip: how many at the beginning
  bool drops_first = false;   // words: the first token's
};

struct TokenizerDescription {
  std::vector<AddedToken> added;
  std::vector<NormalStep> normal;
  std::vector<CutStep> cuts;
  std::vector<std::pair<std::string, int32_t>> vocabulary;   // as written, bytes as characters
  std::vector<std::pair<std::string, std::string>> merges;   // the first are made first
  std::optional<std::string> unknown;
  bool fuses_unknown = false, byte_fallback = false, ignores_merges = false;
  std::vector<int32_t> before, after;   // tokens around a text
  std::vector<TextStep> text_steps;

  bool of_bytes() const { return !cuts.empty() && cuts.back().kind == CutStep::Kind::bytes; }
};

// Throws a Failure that names the place where the text is damaged, or asks for what is not known here.
TokenizerDescription read_tokenizer_description(std::string_view json, const std::string& path);

}  // namespace command
