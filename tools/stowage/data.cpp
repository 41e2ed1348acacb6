#include "data.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "units.h"

namespace command {
namespace {

// The tokens of a text, in a file without a name that is gone with the process.
class HeldTokens {
 public:
  HeldTokens(std::span<const int32_t> tokens, uint64_t vocabulary) : file_(std::tmpfile()) {
    const std::string bytes = token_file(tokens, vocabulary);
    if (!file_ || std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size() || std::fflush(file_) != 0)
      throw Failure(exit_failed, fmt::format("cannot write {} bytes of tokens into a temporary file: {}", grouped(bytes.size()), std::strerror(errno)));
  }
  ~HeldTokens() {
    if (file_) std::fclose(file_);
  }
  HeldTokens(const HeldTokens&) = delete;
  std::string path() const { return fmt::format("/dev/fd/{}", ::fileno(file_)); }

 private:
  std::FILE* file_;
};

}  // namespace

void add_data_flags(CLI::App& command, DataFlags& flags) {
  command.add_option("--data", flags.path, "A text in UTF-8, or a .bin file of little-endian uint16 (uint32) token ids.")
      ->required()
      ->type_name("FILE");
  add_tokenizer_flag(command, flags.tokenizer);
}

Dataset open_data(const DataFlags& flags, const Tokenization& tokenization, uint64_t vocabulary, uint64_t sequence, uint64_t seed,
                  bool evaluates, std::optional<uint32_t> document_end) {
  std::optional<HeldTokens> held;
  if (tokenization.kind() == Tokenization::Kind::text) held.emplace(tokenization.read(flags.path), vocabulary);
  const std::string path = held ? held->path() : flags.path;
  auto options = sized<stw_dataset_options>();
  options.path = path.c_str();
  options.tokenizer = tokenization.kind() == Tokenization::Kind::bytes ? STW_TOKENIZER_BYTE : STW_TOKENIZER_IDS;
  options.vocabulary = vocabulary;
  options.sequence = sequence;
  options.seed = seed;
  if (document_end) {
    options.set_mask = STW_SET_DOCUMENT_END;
    options.document_end = *document_end;
  }
  stw_dataset* data = nullptr;
  const auto open = [&](stw_error* error) { return stw_dataset_open(&data, &options, error); };
  try {
    call(open);
  } catch (const Failure& failure) {
    std::string message = failure.what();
    if (const size_t at = message.find(path); at != std::string::npos) message.replace(at, path.size(), flags.path);
    // Where windows of one token fit, it is their length that is wrong.
    options.sequence = 1;
    if (open(nullptr) != STW_OK) throw Failure(failure.exit_code, message);
    stw_dataset_close(data);
    throw Failure(failure.exit_code, message + "; use a shorter --seq");
  }
  Dataset dataset(data);
  const uint64_t held_out = query(dataset).evaluation_tokens;
  if (evaluates && held_out <= sequence)
    throw Failure(exit_failed, fmt::format("{}: the held-out part needs at least {} tokens (a window of {} and one target "
                                           "more), found {}; use a shorter --seq, or train with --eval-batches 0",
                                           flags.path, grouped(sequence + 1), grouped(sequence), grouped(held_out)));
  return dataset;
}

}  // namespace command
