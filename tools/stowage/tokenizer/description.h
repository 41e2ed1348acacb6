// The contents of a tokenizer.json: the format of Hugging Face's tokenizers library.
// Source: https://huggingface.co/docs/tokenizers/components
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
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

  bool operator==(const AddedToken&) const = default;
};

// What is looked for: a regular expression, or itself.
struct SearchedText {
  std::string text;
  bool is_pattern;
};

// BERT's normalizer is described as several steps.
struct NormalStep {
  enum class Kind {
    nfc, nfd, nfkc, nfkd,
    prepend, replace,
    strip_left, strip_right,      // white space
    lowercase,
    drop_marks,                   // category M
    drop_nonspacing,              // category Mn
    clean,                        // drops controls and U+FFFD, and replaces white space with spaces
    spaces_around_ideographs,
    charsmap,                     // SentencePiece's rules
  } kind;
  SearchedText searched = {};   // replace; charsmap: its place in the file, for messages
  std::string content = {};     // prepend, replace; charsmap: its bytes
};

struct CutStep {
  // bytes: from here on text is bytes, of which tokens are made; the last step. words: a space is a character of its own that begins
  // a word ("Metaspace"). spaces, punctuation: each such character is a match. words_or_signs: the pieces are runs of word characters, and runs
  // of characters that are neither word characters nor white space ("Whitespace").
  enum class Kind { matches, digits, spaces, punctuation, words_or_signs, bytes, words } kind;
  enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous } behavior = Behavior::isolated;
  SearchedText searched = {};     // matches; words: the character
  bool inverted = false;          // what lies between the matches is a match
  enum class Prefix { never, first, always } prefix = Prefix::never;   // bytes, words: a space before a piece that has none
};

// How tokens become text where they are not bytes.
struct TextStep {
  // bytes: <0x0A> is a byte. pieces: removes `searched` from the beginning of a token, or puts a space before the token; not for the first one.
  // cleanup: removes the space before a full stop and the like.
  enum class Kind { replace, bytes, strip, words, pieces, cleanup } kind;
  std::string searched = {}, content = {};
  uint64_t start = 0;    // strip: how many at the beginning
  bool drops_first = false;   // words: the first token's
};

struct BytePairsDescription {
  std::vector<std::pair<std::string, std::string>> merges;   // the first are made first
  std::optional<std::string> unknown;
  bool fuses_unknown = false, byte_fallback = false, ignores_merges = false;
};
struct WordPiecesDescription {
  std::string unknown, continuing_prefix;
  uint64_t most_characters;   // a longer word is unknown
};
struct UnigramDescription {
  std::vector<double> scores;   // one for each token of the vocabulary, whose ids are 0, 1, …
  std::optional<int32_t> unknown;
  bool byte_fallback = false;
};

// A part of an encoding: one of the texts, or special tokens.
struct TemplatePart {
  enum class Kind { first, second, special } kind;
  int32_t type;                       // the token type
  std::vector<int32_t> tokens = {};   // special
};

struct TokenizerDescription {
  std::vector<AddedToken> added;
  std::vector<NormalStep> normal;
  std::vector<CutStep> cuts;
  std::vector<std::pair<std::string, int32_t>> vocabulary;   // as written, bytes as characters
  std::variant<BytePairsDescription, WordPiecesDescription, UnigramDescription> model;
  // The parts of the encoding of one text and of two.
  std::vector<TemplatePart> single{{TemplatePart::Kind::first, 0}}, pair{{TemplatePart::Kind::first, 0}, {TemplatePart::Kind::second, 1}};
  bool truncates_left = false;   // a text that is too long loses its beginning
  std::vector<TextStep> text_steps;

  bool of_bytes() const { return !cuts.empty() && cuts.back().kind == CutStep::Kind::bytes; }
};

// Of a tokenizer.json and the files beside it, or of a file whose name is vocab.txt or vocab.json. Throws what Tokenizer's constructor throws of files.
TokenizerDescription read_description(const std::string& path);
// Throws a Failure that names the place where the text is damaged, or asks for what is not known here.
TokenizerDescription read_tokenizer_description(std::string_view json, const std::string& path);

}  // namespace command
