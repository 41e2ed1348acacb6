#include "src/sample_inputs.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace stw {

static constexpr size_t inputs_of_a_sample = 5;   // buffers with a row for each: tokens, targets, positions, weights, reference

void SampleInputs::reserve(const Programs& programs, const Execution& execution, const Stream& stream) {
  if (stream.on_host(execution.arena)) return;
  const int64_t samples = std::max(programs.micro_first.samples, programs.evaluate.samples);
  staged_.resize(static_cast<size_t>(samples * execution.graph->sequence) * inputs_of_a_sample * sizeof(int32_t));
}

Status SampleInputs::load(const Program& program, const Execution& execution, Stream& stream, const SampleSource& source, uint64_t first, uint64_t samples) {
  const uint64_t t = static_cast<uint64_t>(execution.graph->sequence), part = static_cast<uint64_t>(program.samples) * t * sizeof(int32_t);
  const bool direct = stream.on_host(execution.arena) != nullptr;
  const int buffers[] = {program.tokens, program.targets, program.positions, program.weights, program.reference};
  static_assert(std::size(buffers) == inputs_of_a_sample);
  const auto place = [&](size_t k, uint64_t s) -> void* {
    if (buffers[k] < 0) return nullptr;
    return direct ? static_cast<void*>(execution.rows<int32_t>(program, buffers[k], s)) : staged_.data() + k * part + s * t * sizeof(int32_t);
  };
  for (uint64_t s = 0; s < static_cast<uint64_t>(program.samples); ++s) {
    const SampleRows rows{static_cast<int32_t*>(place(0, s)), static_cast<int32_t*>(place(1, s)), static_cast<int32_t*>(place(2, s)),
                          static_cast<float*>(place(3, s)), static_cast<float*>(place(4, s))};
    if (rows.positions) std::iota(rows.positions, rows.positions + t, 0);
    if (rows.weights) std::fill_n(rows.weights, t, 1.0f);
    if (rows.reference) std::fill_n(rows.reference, t, 0.0f);
    if (first + s < samples) {
      STW_TRY(source(first + s, rows));
    } else {
      std::fill_n(rows.tokens, t, 0);
      std::fill_n(rows.targets, t, kernels::ignored_target);
    }
  }
  for (size_t k = 0; !direct && k < std::size(buffers); ++k)
    if (buffers[k] >= 0) stream.upload(execution.rows<std::byte>(program, buffers[k]), place(k, 0), part);
  return ok();
}

}  // namespace stw
