// The tokens of a run, as a dataset that is opened for a plan's windows.
#pragma once
#include <optional>
#include <string>

#include "handles.h"
#include "tokenization.h"

namespace CLI {   // its headers cost more to compile than all else here
class App;
}

namespace command {

struct DataFlags {
  std::string path;
  std::string tokenizer = "auto";   // see Tokenization::of_file
};

void add_data_flags(CLI::App& command, DataFlags& flags);

// `evaluates`: the held-out part must be long enough too.
Dataset open_data(const DataFlags& flags, const Tokenization& tokenization, uint64_t vocabulary, uint64_t sequence, uint64_t seed,
                  bool evaluates, std::optional<uint32_t> document_end = {});

}  // namespace command
