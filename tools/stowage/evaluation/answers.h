// The answers of a model with labels or numbers to texts whose labels or numbers are known: the loss and the
// usual metrics. Each text is computed once.
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
  double loss = 0;                 // mean over texts, or over words
  std::optional<double> accuracy;  // unset for numbers and answers in contexts
  uint64_t count = 0;              // number of texts, or of words
  uint64_t questions = 0;          // about contexts; their texts are counted above
  // metrics by their JSON names (f1_macro, mse, …); NaN if undefined
  std::vector<std::pair<std::string, double>> figures;
  std::string by_type;  // metrics of each entity type, as JSON; else empty
  std::string line;     // the metrics for people; empty: there are none
};

// Evaluates the documents from token number `first` on. The model has these labels and this task
// (STW_TASK_*). Throws a Failure with the library's status, which may be STW_NON_FINITE.
Answered answer_documents(stw_trainer* trainer, const Examples& examples, uint64_t first, uint32_t task,
                          std::span<const std::string> labels, size_t positive = 1);

}  // namespace command
