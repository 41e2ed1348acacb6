// How the text of a file, a prompt or an answer is tokens: bytes, those of a tokenizer.json or vocab.txt, or
// numbers that somebody else made of it.
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

  // `flag`: --tokenizer; a path is for texts. auto means ids for data that is token ids, else the
  // tokenizer.json or vocab.txt beside the model's config.json, else bytes for models of 256 tokens. Throws
  // where it cannot mean anything sensible, and what Tokenizer's constructor throws.
  static Tokenization of_file(const std::string& flag, const std::string& data, bool has_ids,
                              const std::string& model, uint64_t vocabulary);
  // By the given file or folder, or if `path` is empty by the tokenizer beside the model's config.json.
  // Throws if there is none.
  static Tokenization of_text(const std::string& path, const std::string& model, uint64_t vocabulary);
  // For `generate`, which has no file to go by: auto means what a run was trained on, and of other folders
  // the tokenizer beside the model's config.json; where there is none, bytes for models of 256 tokens, else
  // ids.
  static Tokenization of_model(const std::string& flag, const std::string& model, uint64_t vocabulary);
  ~Tokenization();
  Tokenization(Tokenization&&) noexcept;

  Kind kind() const { return kind_; }
  // The tokenizer.json or vocab.txt; empty for the other kinds.
  const std::string& file() const { return file_; }

  uint64_t vocabulary() const { return vocabulary_; }
  // For kinds bytes and text: the tokens of a text, each below the vocabulary; with those that the tokenizer
  // puts around a text, unless it is to be as it is. Throws a Failure that names `name`.
  std::vector<int32_t> encode(const std::string& text, const std::string& name, bool as_it_is = false) const;
  // The tokens of a text as it is, with what tokens_up_to() needs.
  PlacedTokens encode_placed(const std::string& text, const std::string& name) const;
  // How many of the tokens `whole` of the text are also the first tokens of its part before `byte`. Takes
  // time for the text after the last of whole.places before the byte. Adds a place to `whole` if the tokens
  // of the part are all of them, so that bytes in ascending order take time proportional to the text.
  size_t tokens_up_to(size_t byte, PlacedTokens& whole, const std::string& text,
                      const std::string& name) const;
  // For kind text: the same as Tokenizer's, with every token below the vocabulary.
  Encoding encode(std::string_view text, std::optional<std::string_view> second, const std::string& name,
                  const EncodeOptions& options) const;
  Encoding encode_words(std::span<const std::string> words, const std::string& name,
                        const EncodeOptions& options) const;
  bool joins_words() const;  // as Tokenizer's
  // The tokens of a prompt. Throws where there are none, or one is not below the vocabulary.
  std::vector<int32_t> parse_prompt(const std::string& prompt) const;
  // What people read of these tokens, which come behind those that `state` has seen: as Tokenizer's decode()
  // and finish(); bytes are UTF-8 too.
  std::string text_of(std::span<const int32_t> tokens, Decoding& state) const;
  std::string rest_of_text(Decoding& state) const;
  bool has_text(int32_t token) const;  // kind text
  std::string special_text(int32_t token)
      const;  // of a special token what the tokenizer calls it; of others, and of the other kinds, empty

 private:
  Tokenization(Kind kind, uint64_t vocabulary, const std::string& file = {});
  void check(std::span<const int32_t> tokens, const std::string& name) const;

  Kind kind_;
  uint64_t vocabulary_;
  std::string file_;
  std::unique_ptr<const Tokenizer> tokenizer_;
};

// The tokens that end a text: --document-end of the run that the model comes from, then what its
// generation_config.json says, or its config.json.
std::vector<int32_t> end_tokens(const std::string& model);

void add_tokenizer_flag(CLI::App& command, std::string& tokenizer);
// Rather than auto, byte or ids.
bool is_tokenizer_path(const std::string& flag);

// Of a token in a file of token ids: 2, 4 where the vocabulary exceeds 65,536.
int token_bytes(uint64_t vocabulary);
// As such a file has them, little-endian.
std::string token_file(std::span<const int32_t> tokens, uint64_t vocabulary);

// How the model wants conversations written: the template of --chat-template, else of the tokenizer's folder,
// else of the model's. Nothing: there is none. Throws what ChatTemplate::find throws.
std::optional<chat::ChatTemplate> chat_template_of(const std::string& flag, const Tokenization& tokenization,
                                                   const std::string& model);
Failure no_chat_template(const std::string& asked_by);
void add_chat_template_flag(CLI::App& command, std::string& path);

// Copies what the model's folder, and that of the tokenizer, have of files that transformers reads a
// tokenizer from into the folder of a run, but for what is there already. Returns their names.
std::vector<std::string> copy_tokenizer_files(const Tokenization& tokenization, const std::string& model,
                                              const std::string& run);
// The names of such files.
std::span<const char* const> tokenizer_file_names();

}  // namespace command
