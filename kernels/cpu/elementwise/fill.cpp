// Zeros new optimizer states and gradient buffers.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

void fill(const Launch& launch, const FillArgs& args) {
  // memset is fast: a task of a few thousand elements would be too small.
  constexpr int64_t task_bytes = 256 * 1024;
  int64_t bytes = (int64_t)args.bytes;
  parallel_for(launch, ceil_div(bytes, task_bytes), [&](int64_t task, int) {
    int64_t begin = task * task_bytes;
    memset((char*)args.data + begin, 0, (size_t)min(task_bytes, bytes - begin));
  });
}

}  // namespace stw::kernels::STW_ISA
