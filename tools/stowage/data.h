// The tokens of a run, as a dataset that is opened for a plan's windows.
#pragma once
#include <optional>
#include <string>

#include "examples.h"
#include "flags.h"
#include "handles.h"
#include "tokenization.h"

namespace CLI {   // its headers cost more to compile than all else here
class App;
}

namespace command {

struct DataFlags {
  std::string path;
  std::string tokenizer = "auto";   // see Tokenization::of_file
  std::string chat_template;        // see chat_template_of
};

void add_data_flags(CLI::App& command, DataFlags& flags);

struct OpenData {
  Dataset dataset;
  ExampleCounts counts;   // of prompts and answers; else no examples
};

// Whether the data is examples, and what ends one where nothing is given: the model's end of text, or what the run had that it comes from.
void find_examples(PlanFlags& plan, const DataFlags& data, const ModelFlags& model);

// `evaluates`: the held-out part must be long enough too.
OpenData open_data(const DataFlags& flags, const Tokenization& tokenization, const ModelFlags& model, uint64_t vocabulary, uint64_t sequence,
                   bool evaluates, std::optional<uint32_t> document_end);

}  // namespace command
