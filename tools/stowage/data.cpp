#include "data.h"

#include <fmt/format.h>

#include <CLI/App.hpp>

#include "units.h"

namespace command {
namespace {

constexpr uint64_t byte_vocabulary = 256;

}  // namespace

void add_tokenizer_flag(CLI::App& command, std::string& tokenizer) {
  command
      .add_option("--tokenizer", tokenizer, "byte: a token is a byte of text; ids: numbers. auto: byte for 256 tokens.")
      ->check(CLI::IsMember({"auto", "byte", "ids"}))
      ->type_name("auto|byte|ids");
}

void add_data_flags(CLI::App& command, DataFlags& flags) {
  command.add_option("--data", flags.path, "A text, or a .bin file of little-endian uint16 (uint32) token ids.")
      ->required()
      ->type_name("FILE");
  add_tokenizer_flag(command, flags.tokenizer);
}

bool tokens_are_bytes(const std::string& tokenizer, const std::string& path, uint64_t vocabulary) {
  if (tokenizer == "byte" || tokenizer == "ids") {
    if (tokenizer == "byte" && vocabulary < byte_vocabulary)
      throw Failure(exit_failed, fmt::format("--tokenizer byte needs a vocabulary of at least {}, the model's has {}",
                                             byte_vocabulary, grouped(vocabulary)));
    return tokenizer == "byte";
  }
  if (path.empty()) return vocabulary == byte_vocabulary;
  if (path.ends_with(".bin")) return false;
  if (vocabulary != byte_vocabulary)
    throw Failure(exit_failed,
                  fmt::format("{}: expected a .bin file of token ids for the model's vocabulary of {}, found "
                              "another name; --tokenizer byte takes its bytes for tokens",
                              path, grouped(vocabulary)));
  return true;
}

Dataset open_data(const DataFlags& flags, uint64_t vocabulary, uint64_t sequence, uint64_t seed, bool evaluates,
                  std::optional<uint32_t> document_end) {
  auto options = sized<stw_dataset_options>();
  options.path = flags.path.c_str();
  options.tokenizer =
      tokens_are_bytes(flags.tokenizer, flags.path, vocabulary) ? STW_TOKENIZER_BYTE : STW_TOKENIZER_IDS;
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
    // Where windows of one token fit, it is their length that is wrong.
    options.sequence = 1;
    if (open(nullptr) != STW_OK) throw;
    stw_dataset_close(data);
    throw Failure(failure.exit_code, fmt::format("{}; use a shorter --seq", failure.what()));
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
