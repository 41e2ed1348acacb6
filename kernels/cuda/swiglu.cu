// SwiGLU and its gradient (swiglu_form.h). Gate and up lie side by side in a row. Bound by memory.
#include "kernels/common/swiglu_form.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

// body(row, i, n) for the groups of all rows; a group lies inside one row.
template <class Body>
STW_DEVICE void for_groups_of_rows(const SwigluArgs& args, const Body& body) {
  const int64_t groups = ceil_div(args.features, 16);
  for_tasks_of_grid(args.rows * groups, [&](int64_t task) {
    const int64_t i = task % groups * 16;
    body(task / groups, i, min(static_cast<int64_t>(16), args.features - i));
  });
}

template <DType dtype>
static __global__ void __launch_bounds__(block_threads) swiglu_kernel(SwigluArgs args) {
  for_groups_of_rows(args, [&](int64_t row, int64_t i, int64_t n) {
    const int64_t gate_at = row * 2 * args.features + i;
    const F16 gate = load_group(args.x.data, dtype, gate_at, n), up = load_group(args.x.data, dtype, gate_at + args.features, n);
    store_group(args.y.data, args.y.dtype, row * args.features + i, swiglu_form(gate, up), n);
  });
}

template <DType dtype>
static __global__ void __launch_bounds__(block_threads) swiglu_gradient_kernel(SwigluArgs args) {
  for_groups_of_rows(args, [&](int64_t row, int64_t i, int64_t n) {
    const int64_t gate_at = row * 2 * args.features + i, up_at = gate_at + args.features;
    const F16 gate = load_group(args.x.data, dtype, gate_at, n), up = load_group(args.x.data, dtype, up_at, n);
    const F16 dy = load_group(args.dy.data, args.dy.dtype, row * args.features + i, n);
    const SwigluGradient dx = swiglu_gradient_form(gate, up, dy);
    store_group(args.y.data, args.y.dtype, gate_at, dx.gate, n);
    store_group(args.y.data, args.y.dtype, up_at, dx.up, n);
  });
}

static int blocks_of(const SwigluArgs& args) { return blocks_for_elements(args.rows * round_up(args.features, 16)); }

void swiglu(const Launch& l, const SwigluArgs& args) {
  for_dtype(args.x.dtype, [&](auto stored) { launch(l, swiglu_kernel<stored.dtype>, blocks_of(args), block_threads, 0, args); });
}

void swiglu_gradient(const Launch& l, const SwigluArgs& args) {
  for_dtype(args.x.dtype, [&](auto stored) { launch(l, swiglu_gradient_kernel<stored.dtype>, blocks_of(args), block_threads, 0, args); });
}

}  // namespace stw::kernels::cuda
