// The model card: README.md in a folder that a run writes. It names the base model, the data and the quality,
// and its front matter follows the Hub's format.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "run/metrics.h"

namespace command {

struct ModelCard {
  std::string folder, base, architecture;  // base: the model as --model named it
  uint32_t task = 0;                       // STW_TASK_*
  // is_merged: made by `merge` from adapters and a model, not by a run
  bool has_adapters = false, has_pairs = false, is_merged = false;
  std::vector<std::pair<std::string, std::string>> rows;  // table of the run's properties
  std::string data;                                       // file of the evaluation
  bool is_evaluated = false;
  Evaluation evaluation;  // valid if is_evaluated
};

// Whether a command wrote this README.md and its mark is still there. Users remove the mark to keep their own
// text.
bool is_card_of_run(const std::string& path);
std::string model_card(const ModelCard& card);
// The name on the Hub of a model in a folder, by the path of the Hub's cache. Empty if the path does not
// contain it.
std::string name_on_hub(const std::string& model);

}  // namespace command
