// The rows of a sample, on their way into the buffers of a micro-step.
#pragma once
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "planner/graph/head.h"
#include "planner/graph/input.h"

namespace stw {

// The destination of one input of a sample: `width` numbers for each of its rows, row by row.
struct SampleInput {
  std::byte* data = nullptr;  // null: the program has no such input
  kernels::Format format = kernels::Format::i32;
  int64_t rows = 0, width = 1;

  template <class T>
  std::span<T> numbers() const {
    static_assert(std::is_same_v<T, int32_t> || std::is_same_v<T, float>);
    if (!data) return {};
    assert(format == (std::is_same_v<T, float> ? kernels::Format::f32 : kernels::Format::i32));
    return {reinterpret_cast<T*>(data), static_cast<size_t>(rows * width)};
  }
};

// The destinations of all inputs of a sample, with the rows of InputRow::written_rows. A source of samples
// finds the defaults of the table of inputs there. It writes no inputs that come from other inputs.
struct SampleRows {
  std::array<SampleInput, input_count> inputs{};
  TargetRow target_row = TargetRow::last;  // for labels of documents

  const SampleInput& operator[](Input input) const { return inputs[static_cast<size_t>(input)]; }
  SampleInput& operator[](Input input) { return inputs[static_cast<size_t>(input)]; }
  // Empty if the program has no such input.
  std::span<int32_t> integers(Input input) const { return (*this)[input].numbers<int32_t>(); }
  std::span<float> floats(Input input) const { return (*this)[input].numbers<float>(); }
};

}  // namespace stw
