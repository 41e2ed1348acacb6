// SwiGLU, GeGLU and their gradients (swiglu_form.h, geglu_form.h, fast_activation.h). A row holds the gate,
// then the up projection. Bound by memory: 6 bytes an element of a 16-bit y, 10 for the gradient. A thread
// has two groups of each operand in flight (ahead.h).
#include "kernels/common/geglu_form.h"
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/elementwise/fast_activation.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

template <Gate gate, bool fast>
STW_DEVICE F16 gated(const F16& g, const F16& up) {
  if constexpr (gate == Gate::gelu_erf) return geglu_erf_form(g, up);
  else if constexpr (gate == Gate::gelu_tanh) return fast ? fast_geglu(g, up) : geglu_form(g, up);
  else return fast ? fast_swiglu(g, up) : swiglu_form(g, up);
}
template <Gate gate, bool fast>
STW_DEVICE SwigluGradient gated_gradient(const F16& g, const F16& up, const F16& dy) {
  if constexpr (gate == Gate::gelu_erf) return geglu_erf_gradient_form(g, up, dy);
  else if constexpr (gate == Gate::gelu_tanh)
    return fast ? fast_geglu_gradient(g, up, dy) : geglu_gradient_form(g, up, dy);
  else return fast ? fast_swiglu_gradient(g, up, dy) : swiglu_gradient_form(g, up, dy);
}

template <class Stored, Gate by, bool fast>
static __global__ void __launch_bounds__(block_threads) swiglu_kernel(SwigluArgs args, RowGroups groups) {
  struct Operands {
    F16 gate, up;
  };
  for_groups_of_rows_ahead(
      groups,
      [&](int64_t row, int64_t i, auto n) {
        const DType dtype = Stored::of(args.x.dtype);
        const int64_t gate_at = row * 2 * args.features + i;
        return Operands{load_group(args.x.data, dtype, gate_at, n),
                        load_group(args.x.data, dtype, gate_at + args.features, n)};
      },
      [&](const Operands& o, int64_t row, int64_t i, auto n) {
        store_group(args.y.data, Stored::of(args.y.dtype), row * args.features + i,
                    gated<by, fast>(o.gate, o.up), n);
      });
}

// With operands of several types, four blocks a multiprocessor leave as many registers as it needs.
template <class Stored, Gate by, bool fast>
static __global__ void __launch_bounds__(block_threads, Stored::alike ? 0 : 4)
    swiglu_gradient_kernel(SwigluArgs args, RowGroups groups) {
  struct Operands {
    F16 gate, up, dy;
  };
  for_groups_of_rows_ahead(
      groups,
      [&](int64_t row, int64_t i, auto n) {
        const DType dtype = Stored::of(args.x.dtype);
        const int64_t gate_at = row * 2 * args.features + i;
        return Operands{load_group(args.x.data, dtype, gate_at, n),
                        load_group(args.x.data, dtype, gate_at + args.features, n),
                        load_group(args.dy.data, Stored::of(args.dy.dtype), row * args.features + i, n)};
      },
      [&](const Operands& o, int64_t row, int64_t i, auto n) {
        const DType dtype = Stored::of(args.y.dtype);
        const int64_t gate_at = row * 2 * args.features + i;
        const SwigluGradient dx = gated_gradient<by, fast>(o.gate, o.up, o.dy);
        store_group(args.y.data, dtype, gate_at, dx.gate, n);
        store_group(args.y.data, dtype, gate_at + args.features, dx.up, n);
      });
}

template <Gate g>
struct Gated {
  static constexpr Gate gate = g;
};
// Calls body(gated) with the gate of these arguments.
template <class Body>
static void for_gate(const SwigluArgs& args, const Body& body) {
  switch (args.gate) {
    case Gate::silu: return body(Gated<Gate::silu>{});
    case Gate::gelu_tanh: return body(Gated<Gate::gelu_tanh>{});
    case Gate::gelu_erf: return body(Gated<Gate::gelu_erf>{});
  }
}

void swiglu(const Launch& l, const SwigluArgs& args) {
  const RowGroups groups =
      row_groups(args.rows, args.features,
                 vectors_at(args.x.data, args.x.dtype) && vectors_at(args.y.data, args.y.dtype));
  for_gate(args, [&](auto gated) {
    for_dtypes({args.x.dtype, args.y.dtype}, [&](auto stored) {
      using Stored = decltype(stored);
      launch(l,
             is_fast(args) ? swiglu_kernel<Stored, gated.gate, takes_halves<Stored>>
                           : swiglu_kernel<Stored, gated.gate, false>,
             blocks_for_ahead(groups), block_threads, 0, args, groups);
    });
  });
}

void swiglu_gradient(const Launch& l, const SwigluArgs& args) {
  const bool vectors = vectors_at(args.x.data, args.x.dtype) && vectors_at(args.dy.data, args.dy.dtype) &&
                       vectors_at(args.y.data, args.y.dtype);
  const RowGroups groups = row_groups(args.rows, args.features, vectors);
  for_gate(args, [&](auto gated) {
    for_dtypes({args.x.dtype, args.dy.dtype, args.y.dtype}, [&](auto stored) {
      using Stored = decltype(stored);
      launch(l,
             is_fast(args) ? swiglu_gradient_kernel<Stored, gated.gate, takes_halves<Stored>>
                           : swiglu_gradient_kernel<Stored, gated.gate, false>,
             blocks_for_ahead(groups), block_threads, 0, args, groups);
    });
  });
}

}  // namespace stw::kernels::cuda
