// README.md of a folder that a run writes: what the model comes from, what it was trained on and how good it is, with front matter as the Hub reads it.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "run/metrics.h"

namespace command {

struct ModelCard {
  std::string folder, base, architecture;   // base: the model as --model named it
  uint32_t task = 0;                                  // STW_TASK_*
  bool has_adapters = false, has_pairs = false, is_merged = false;   // is_merged: of adapters and a model, rather than of a run
  std::vector<std::pair<std::string, std::string>> rows;   // of the table: what is told of the run
  std::string data;                                   // the file that it was evaluated on
  bool is_evaluated = false;
  Evaluation evaluation;                              // if it was
};

// Whether a command wrote the README.md there, and nobody has taken its line away that says so.
bool is_card_of_run(const std::string& path);
std::string model_card(const ModelCard& card);
// The name on the Hub of a model in a folder, as the path of the Hub's cache has it; empty where that does not tell.
std::string name_on_hub(const std::string& model);

}  // namespace command
