// The tokens of a run: which tokenizer is meant, and the dataset opened for a plan's windows.
#pragma once
#include <optional>
#include <string>

#include "handles.h"

namespace CLI {   // its headers cost more to compile than all else here
class App;
}

namespace command {

struct DataFlags {
  std::string path;
  std::string tokenizer = "auto";  // byte, ids, auto: ids for .bin files, bytes for models of vocabulary 256
};

void add_tokenizer_flag(CLI::App& command, std::string& tokenizer);
void add_data_flags(CLI::App& command, DataFlags& flags);

// Whether tokens are bytes of text; for `generate`, which has no file to go by, `path` is empty. Throws where `auto`
// cannot mean anything sensible.
bool tokens_are_bytes(const std::string& tokenizer, const std::string& path, uint64_t vocabulary);

// `evaluates`: the held-out part must be long enough too.
Dataset open_data(const DataFlags& flags, uint64_t vocabulary, uint64_t sequence, uint64_t seed, bool evaluates,
                  std::optional<uint32_t> document_end = {});

}  // namespace command
