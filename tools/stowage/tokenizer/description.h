// The contents of a tokenizer.json, the format of Hugging Face's tokenizers library.
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

// A token that is found in the text before any other step.
struct AddedToken {
  int32_t id;
  std::string content;
  bool single_word;              // matches only whole words
  bool takes_left, takes_right;  // absorbs white space on that side
  bool normalized;               // matched in the normalized text
  bool special;                  // has no text when decoded

  bool operator==(const AddedToken&) const = default;
};

// The text to search for: a regular expression or a literal.
struct SearchedText {
  std::string text;
  bool is_pattern;
};

// One step of normalization. BERT's normalizer becomes several steps.
struct NormalStep {
  enum class Kind {
    nfc,
    nfd,
    nfkc,
    nfkd,
    prepend,
    replace,
    strip_left,
    strip_right,  // white space
    lowercase,
    drop_marks,       // category M
    drop_nonspacing,  // category Mn
    clean,            // drops controls and U+FFFD, and replaces white space with spaces
    spaces_around_ideographs,
    charsmap,  // SentencePiece's rules
  } kind;
  SearchedText searched = {};  // replace: the pattern; charsmap: its place in the file, for messages
  std::string content = {};    // prepend, replace: the text; charsmap: its bytes
};

struct CutStep {
  // bytes: the last step, which turns the text into bytes, from which tokens are made. words: the character
  // in `searched` replaces each space and begins a word ("Metaspace"). spaces, punctuation: each such
  // character is a match. words_or_signs: the pieces are runs of word characters, and runs of characters that
  // are neither word characters nor white space ("Whitespace").
  enum class Kind { matches, digits, spaces, punctuation, words_or_signs, bytes, words } kind;
  enum class Behavior {
    removed,
    isolated,
    merged_with_previous,
    merged_with_next,
    contiguous
  } behavior = Behavior::isolated;
  SearchedText searched = {};  // matches: the pattern; words: the character
  bool inverted = false;       // the matches are the text between what the pattern finds
  // bytes, words: adds a space to a piece without one
  enum class Prefix { never, first, always } prefix = Prefix::never;
};

// How tokens become text if they are not bytes.
struct TextStep {
  // bytes: replaces <0x0A> with its byte. pieces: removes `searched` from the beginning of a token, or puts a
  // space before a token without it; the first token gets no space. cleanup: removes the space before
  // punctuation.
  enum class Kind { replace, bytes, strip, words, pieces, cleanup } kind;
  std::string searched = {}, content = {};
  uint64_t start = 0;        // strip: characters to remove at the beginning
  bool drops_first = false;  // words: drops the space of the first token
};

struct BytePairsDescription {
  std::vector<std::pair<std::string, std::string>> merges;  // in order of priority
  std::optional<std::string> unknown;
  bool fuses_unknown = false, byte_fallback = false, ignores_merges = false;
};
struct WordPiecesDescription {
  std::string unknown, continuing_prefix;
  uint64_t most_characters;  // a longer word is unknown
};
struct UnigramDescription {
  std::vector<double> scores;  // one for each token; token ids are 0, 1, …
  std::optional<int32_t> unknown;
  bool byte_fallback = false;
};

// A part of an encoding: one of the texts, or special tokens.
struct TemplatePart {
  enum class Kind { first, second, special } kind;
  int32_t type;                      // the token type
  std::vector<int32_t> tokens = {};  // the special tokens
};

struct TokenizerDescription {
  std::vector<AddedToken> added;
  std::vector<NormalStep> normal;
  std::vector<CutStep> cuts;
  // as in the file; bytes are written as characters
  std::vector<std::pair<std::string, int32_t>> vocabulary;
  std::variant<BytePairsDescription, WordPiecesDescription, UnigramDescription> model;
  // Templates for the encoding of one text and of two.
  std::vector<TemplatePart> single{{TemplatePart::Kind::first, 0}},
      pair{{TemplatePart::Kind::first, 0}, {TemplatePart::Kind::second, 1}};
  bool truncates_left = false;  // a text that is too long is cut at its beginning
  std::vector<TextStep> text_steps;

  bool of_bytes() const { return !cuts.empty() && cuts.back().kind == CutStep::Kind::bytes; }
};

// Reads a tokenizer.json with the files in the same folder, or a file named vocab.txt or vocab.json. Throws
// as Tokenizer's constructor does.
TokenizerDescription read_description(const std::string& path);
// Throws a Failure that names the place if the text is damaged or uses an unsupported feature.
TokenizerDescription read_tokenizer_description(std::string_view json, const std::string& path);

}  // namespace command
