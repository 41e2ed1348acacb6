// The rows of a sample, on their way into the buffers of a micro-step.
#pragma once
#include <cstdint>

#include "planner/graph/head.h"

namespace stw {

// The destinations of a sample's inputs (planner/graph/input.h). Each has `sequence` numbers, `values` has
// `sequence` rows; null where the plan has no such input. Rows that a source does not write keep their
// defaults.
struct SampleRows {
  int32_t *tokens, *targets;
  int32_t* positions = nullptr;            // default 0, 1, 2, …
  float* weights = nullptr;                // default 1
  float* reference = nullptr;              // default 0
  int32_t* token_types = nullptr;          // default 0
  float* values = nullptr;                 // default 0; `value_count` for each row
  TargetRow target_row = TargetRow::last;  // for labels of documents
  int64_t value_count = 0;
};

}  // namespace stw
