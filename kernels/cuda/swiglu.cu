// SwiGLU and its gradient (swiglu_form.h, fast_activation.h). Gate and up lie side by side in a row. Bound by memory: 6 bytes an element
// of y in 16 bits, 10 the gradient. Two groups of each operand are under way a thread (ahead.h).
#include "kernels/common/swiglu_form.h"
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/fast_activation.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

template <class Stored, bool fast>
static __global__ void __launch_bounds__(block_threads) swiglu_kernel(SwigluArgs args, RowGroups groups) {
  struct Operands { F16 gate, up; };
  for_groups_of_rows_ahead(groups,
    [&](int64_t row, int64_t i, auto n) {
      const DType dtype = Stored::of(args.x.dtype);
      const int64_t gate_at = row * 2 * args.features + i;
      return Operands{load_group(args.x.data, dtype, gate_at, n), load_group(args.x.data, dtype, gate_at + args.features, n)};
    },
    [&](const Operands& o, int64_t row, int64_t i, auto n) {
      store_group(args.y.data, Stored::of(args.y.dtype), row * args.features + i, fast ? fast_swiglu(o.gate, o.up) : swiglu_form(o.gate, o.up), n);
    });
}

template <class Stored, bool fast>
static __global__ void __launch_bounds__(block_threads) swiglu_gradient_kernel(SwigluArgs args, RowGroups groups) {
  struct Operands { F16 gate, up, dy; };
  for_groups_of_rows_ahead(groups,
    [&](int64_t row, int64_t i, auto n) {
      const DType dtype = Stored::of(args.x.dtype);
      const int64_t gate_at = row * 2 * args.features + i;
      return Operands{load_group(args.x.data, dtype, gate_at, n), load_group(args.x.data, dtype, gate_at + args.features, n),
                      load_group(args.dy.data, Stored::of(args.dy.dtype), row * args.features + i, n)};
    },
    [&](const Operands& o, int64_t row, int64_t i, auto n) {
      const DType dtype = Stored::of(args.y.dtype);
      const int64_t gate_at = row * 2 * args.features + i;
      const SwigluGradient dx = fast ? fast_swiglu_gradient(o.gate, o.up, o.dy) : swiglu_gradient_form(o.gate, o.up, o.dy);
      store_group(args.y.data, dtype, gate_at, dx.gate, n);
      store_group(args.y.data, dtype, gate_at + args.features, dx.up, n);
    });
}

void swiglu(const Launch& l, const SwigluArgs& args) {
  const RowGroups groups = row_groups(args.rows, args.features, vectors_at(args.x.data, args.x.dtype) && vectors_at(args.y.data, args.y.dtype));
  for_dtypes({args.x.dtype, args.y.dtype}, [&](auto stored) {
    using Stored = decltype(stored);
    launch(l, is_fast(args) ? swiglu_kernel<Stored, takes_halves<Stored>> : swiglu_kernel<Stored, false>, blocks_for_ahead(groups), block_threads, 0, args, groups);
  });
}

void swiglu_gradient(const Launch& l, const SwigluArgs& args) {
  const bool vectors = vectors_at(args.x.data, args.x.dtype) && vectors_at(args.dy.data, args.dy.dtype) && vectors_at(args.y.data, args.y.dtype);
  const RowGroups groups = row_groups(args.rows, args.features, vectors);
  for_dtypes({args.x.dtype, args.dy.dtype, args.y.dtype}, [&](auto stored) {
    using Stored = decltype(stored);
    launch(l, is_fast(args) ? swiglu_gradient_kernel<Stored, takes_halves<Stored>> : swiglu_gradient_kernel<Stored, false>, blocks_for_ahead(groups), block_threads, 0, args, groups);
  });
}

}  // namespace stw::kernels::cuda
