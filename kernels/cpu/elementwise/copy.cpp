// Copies bytes between host memory and the arena.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

void copy(const Launch& launch, const CopyArgs& args) {
  constexpr int64_t task_bytes = 256 * 1024;  // As in fill.
  int64_t bytes = (int64_t)args.bytes;
  parallel_for(launch, ceil_div(bytes, task_bytes), [&](int64_t task, int) {
    int64_t begin = task * task_bytes;
    memcpy((char*)args.to + begin, (const char*)args.from + begin, (size_t)min(task_bytes, bytes - begin));
  });
}

}  // namespace stw::kernels::STW_ISA
