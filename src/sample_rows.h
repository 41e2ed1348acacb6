// What a sample is, on its way into the buffers of a micro-step.
#pragma once
#include <cstdint>

namespace stw {

// Where one sample of the global batch goes: `sequence` numbers each.
struct SampleRows {
  int32_t *tokens, *targets;
  int32_t* positions = nullptr;        // null where the plan has none; else filled with 0, 1, 2, …
  float* weights = nullptr;            // null where the plan has none; else filled with 1
  float* reference = nullptr;          // null where the plan has none; else filled with 0
};

}  // namespace stw
