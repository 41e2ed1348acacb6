// How the text of a file, a prompt or an answer becomes tokens: bytes are tokens, a tokenizer.json or
// vocab.txt gives them, or another program has already made token ids of the text.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/failure.h"
#include "chat/chat_template.h"
#include "tokenizer/encoding.h"

namespace CLI {  // its headers cost more to compile than all else here
class App;
}

namespace command {

class Tokenizer;

class Tokenization {
 public:
  enum class Kind { bytes, ids, text };

  // `flag` is the value of --tokenizer; a path needs data that is text. auto: ids if the data is token ids;
  // else the tokenizer.json or vocab.txt in the model's folder; else bytes if the vocabulary has 256 tokens.
  // Throws a Failure if flag, data and model do not fit together, and what Tokenizer's constructor throws.
  static Tokenization of_file(const std::string& flag, const std::string& data, bool has_ids,
                              const std::string& model, uint64_t vocabulary);
  // Uses the tokenizer in this file or folder; if `path` is empty, the one in the model's folder. Throws if
  // there is no tokenizer.
  static Tokenization of_text(const std::string& path, const std::string& model, uint64_t vocabulary);
  // For commands without a data file, such as `generate`. auto: the tokenization with which the run was
  // trained, or the tokenizer in another model's folder; without one, bytes if the vocabulary has 256 tokens,
  // else ids.
  static Tokenization of_model(const std::string& flag, const std::string& model, uint64_t vocabulary);
  ~Tokenization();
  Tokenization(Tokenization&&) noexcept;

  Kind kind() const { return kind_; }
  // The tokenizer.json or vocab.txt; empty for the other kinds.
  const std::string& file() const { return file_; }

  uint64_t vocabulary() const { return vocabulary_; }
  // For kinds bytes and text: the tokens of a text, each below the vocabulary. They include the special
  // tokens that the tokenizer adds, unless `as_it_is`. Throws a Failure that names `name`.
  std::vector<int32_t> encode(const std::string& text, const std::string& name, bool as_it_is = false) const;
  // The tokens of a text, without special tokens around it, and their places, which tokens_up_to() needs.
  PlacedTokens encode_placed(const std::string& text, const std::string& name) const;
  // Returns the length of the common prefix of the tokens `whole` of the text and the tokens of its part
  // before `byte`. Encodes only the text between the last place in whole.places and the byte. If the part's
  // tokens are all in the prefix, adds a place to `whole`; calls with ascending bytes then take linear time
  // in all.
  size_t tokens_up_to(size_t byte, PlacedTokens& whole, const std::string& text,
                      const std::string& name) const;
  // For kind text: as in Tokenizer; throws a Failure if a token is not below the vocabulary.
  Encoding encode(std::string_view text, std::optional<std::string_view> second, const std::string& name,
                  const EncodeOptions& options) const;
  Encoding encode_words(std::span<const std::string> words, const std::string& name,
                        const EncodeOptions& options) const;
  bool joins_words() const;  // as in Tokenizer
  // For kind text: as in Tokenizer; throws a Failure if a token is not below the vocabulary.
  RangedTokens encode_ranged(std::string_view text, const std::string& name) const;
  Encoding pair_of(std::span<const int32_t> first, std::span<const int32_t> second) const;
  // The tokens of a prompt. Throws if it has none, or if one is not below the vocabulary.
  std::vector<int32_t> parse_prompt(const std::string& prompt) const;
  // Decodes tokens that follow those that `state` has seen, and the rest at the end, like decode() and
  // finish() of Tokenizer. Kind bytes is decoded as UTF-8.
  std::string text_of(std::span<const int32_t> tokens, Decoding& state) const;
  std::string rest_of_text(Decoding& state) const;
  bool has_text(int32_t token) const;  // kind text
  // The tokenizer's name of a special token; empty for other tokens and other kinds.
  std::string special_text(int32_t token) const;

 private:
  Tokenization(Kind kind, uint64_t vocabulary, const std::string& file = {});
  void check(std::span<const int32_t> tokens, const std::string& name) const;

  Kind kind_;
  uint64_t vocabulary_;
  std::string file_;
  std::unique_ptr<const Tokenizer> tokenizer_;
};

// The tokens that end a text: --document-end of the run that the model comes from, then the eos_token_id of
// its generation_config.json or config.json.
std::vector<int32_t> end_tokens(const std::string& model);

void add_tokenizer_flag(CLI::App& command, std::string& tokenizer);
// Whether the flag is a path, and not auto, byte or ids.
bool is_tokenizer_path(const std::string& flag);

// Bytes of one token in a file of token ids: 2, or 4 if the vocabulary exceeds 65,536.
int token_bytes(uint64_t vocabulary);
// The bytes of such a file, little-endian.
std::string token_file(std::span<const int32_t> tokens, uint64_t vocabulary);

// The chat template of --chat-template, else of the tokenizer's folder, else of the model's folder; nothing
// if none has one. Throws what ChatTemplate::find throws.
std::optional<chat::ChatTemplate> chat_template_of(const std::string& flag, const Tokenization& tokenization,
                                                   const std::string& model);
Failure no_chat_template(const std::string& asked_by);
void add_chat_template_flag(CLI::App& command, std::string& path);

// Copies the files from which transformers reads a tokenizer into the folder of a run, from the tokenizer's
// folder or else the model's. Keeps the files that the run already has. Returns the names of the copied
// files.
std::vector<std::string> copy_tokenizer_files(const Tokenization& tokenization, const std::string& model,
                                              const std::string& run);
// The names of those files.
std::span<const char* const> tokenizer_file_names();

}  // namespace command
