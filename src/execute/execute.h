// Runs programs: every instruction becomes one kernel call on addresses in the arena. All decisions are in
// the plan.
#pragma once
#include <cstddef>

#include "kernels/contract/kernels.h"
#include "planner/plan/plan.h"

namespace stw {

struct Execution {
  const Graph* graph = nullptr;
  const Arena* layout = nullptr;
  std::byte* arena = nullptr;
  std::byte* host = nullptr;  // offloaded tensors; null where nothing is offloaded
  const kernels::Table* table = nullptr;
  kernels::Parallel parallel{};
  void* stream = nullptr;                                // a cudaStream_t; null on the CPU
  const kernels::ProductLibrary* products = nullptr;     // null unless the numerics ask for it
  const kernels::AttentionLibrary* attention = nullptr;  // null unless the numerics ask for it
  double weight_decay = 0;
  uint64_t first_sample = 0;            // of the global batch, in the count of StepState::first_sample
  kernels::PairTerms pairs{};           // for graphs with a preference
  kernels::StepState* state = nullptr;  // in the arena; the host may not be able to read it
  // The address of a tensor that outlives programs: in the arena, or in host memory.
  std::byte* address(int tensor) const {
    const auto t = static_cast<size_t>(tensor);
    if (layout->on_host(tensor)) return host + layout->host[layout->host_of_tensor[t]].offset;
    return arena + layout->persistent[layout->of_tensor[t]].offset;
  }
  // A buffer of a program; null where `buffer` is negative.
  template <class T>
  T* rows(const Program& program, int buffer) const {
    return buffer < 0 ? nullptr : reinterpret_cast<T*>(arena + program.buffers[buffer].offset);
  }
};

// A cancelled call (check_in.h) ends between two instructions or inside one, but not after the first
// instruction that updates parameters.
void execute(const Execution& execution, const Program& program);
// Executes one instruction of a program, on another stream.
void execute_one(const Execution& execution, const Program& program, const Instruction& instruction,
                 void* stream);
// Like execute(), and writes the seconds of every instruction to `seconds`.
void execute_timed(const Execution& execution, const Program& program, float* seconds);

}  // namespace stw
