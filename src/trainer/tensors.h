// Access to a trainer's tensors from outside.
#pragma once
#include <cstddef>
#include <cstdint>

#include "src/trainer/core.h"

namespace stw {

enum class TensorView : uint8_t { parameter, gradient, first_moment, second_moment };

struct TensorMemory {
  void* data;
  Format format;
  Shape shape;
  bool on_host;  // the tensor is offloaded
};

// Errors: unsupported where the parameter has no such tensor of plain numbers.
Result<TensorMemory> view(TrainerCore& core, size_t parameter, TensorView kind);
// Overwrites a part of a parameter with fp32 values.
void write_parameter(TrainerCore& core, size_t parameter, uint64_t first, const float* values,
                     uint64_t count);

}  // namespace stw
