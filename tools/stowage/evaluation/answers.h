// What a model with labels, or with numbers, answers to texts of which these are known: its loss, and the figures that people report. Every text is computed
// once.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/examples.h"
#include "stowage.h"

namespace command {

struct Answered {
  double loss = 0;                  // mean over texts, or over words
  std::optional<double> accuracy;   // of numbers none
  uint64_t count = 0;               // texts, or words
  std::vector<std::pair<std::string, double>> figures;   // by their names in JSON: f1_macro, mse, …; what is undefined is not a number
  std::string by_type;              // of entities, as JSON; else empty
  std::string line;                 // for people; empty: there are no figures
};

// The documents that begin with token number `first`, of a model with these labels and this task (STW_TASK_*). Throws a Failure with the library's status, STW_NON_FINITE among
// them.
Answered answer_documents(stw_trainer* trainer, const Examples& examples, uint64_t first, uint32_t task, std::span<const std::string> labels, size_t positive = 1);

}  // namespace command
