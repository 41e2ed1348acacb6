// Muon on tensor cores (muon_step.h). Operands of products are bf16 and sums are fp32 (chains of chain_terms,
// and totals), as in the iteration of Jordan et al. But X itself is kept in fp32, in two parts
// (master_bits.h): a bf16 number, which is the operand of products, and the remaining 16 bits. h(x) is the
// bf16 part of x:
//   A = h(h(X)·h(X)ᵀ),  B = h(b·A + c·A·A),  X = a·X + B·h(X)
// Small singular values grow by a factor of 3.4445 in each step, through a·X. B is almost zero in their
// directions, but the rounding error of X is not. With X in bf16, a·h(X) would carry an error from the large
// singular values that is as large as the small ones. Root mean square errors of updates of 64 × 4096 to 1000
// × 1000 against fp64 (tools/bench/muon_rounding.py):
//                                                     this         X in bf16    a·I in B     torch.optim.Muon
//    normally distributed                             1.0 to 1.5 % 0.9 to 1.4 % 0.8 to 1.3 % 1.0 to 1.4 %
//    rank 32 and 1 % of noise                         0.2 to 0.9 % 13 to 16 %   13 to 16 %   16 to 20 %
//    singular values from 1 to 10^-6                  0.5 to 0.7 % 5 to 16 %    5 to 16 %    6 to 20 %
// B takes both of its terms from the rounded A. If the first one came from an unrounded A, errors would
// cancel less and be twice as large.
//
// u is stored unscaled. The first iteration scales its A and its new X instead. Rows are padded with zeros to
// a multiple of 8 elements, because tensor cores take whole groups of 8. Only the tiles of A and B on and
// below the diagonal are computed, and each is also stored transposed. In a tile on the diagonal, an element
// and its mirror image are the device's results; they need not be equal. This is our own product, whatever
// computes the other products: k is not split, and nothing depends on the order of blocks.
//
// With the sides s <= l: 5·(3·s²·l + s³) floating-point operations of tensor cores plus the part of the
// diagonal's tiles above the diagonal. Workspace: 6·s·l + 4·s² bytes (muon_layout.h).
#include "kernels/cuda/product/tensor_product.h"
#include "kernels/cuda/update/muon_passes.h"

namespace stw::kernels::cuda {

struct SplitX {
  uint16_t *half, *remainder;
  int64_t columns, stride;
};
// The place of an element that has index `at` in the matrix without gaps.
STW_DEVICE int64_t place_of(const SplitX& x, int64_t at) {
  return at + at / x.columns * (x.stride - x.columns);
}
STW_DEVICE void store_x(const SplitX& x, int64_t at, F16 value, int64_t n) {
  Halves half, remainder;
  for (int i = 0; i < 4; ++i) {
    half.h[i] = nearest_half(bits_of(value.f[i]));
    remainder.h[i] = static_cast<uint16_t>(remainder_of(bits_of(value.f[i])));
  }
  if (x.stride == x.columns) {
    store_some_halves(x.half + at, half, n);
    return store_some_halves(x.remainder + at, remainder, n);
  }
  for (int i = 0; i < 4; ++i)
    if (first_lane() + i < n) {
      const int64_t to = place_of(x, at + first_lane() + i);
      x.half[to] = half.h[i], x.remainder[to] = remainder.h[i];
    }
}
STW_DEVICE F16 load_x(const SplitX& x, int64_t at, int64_t n) {
  Halves half = {}, remainder = {};
  if (x.stride == x.columns) {
    half = load_some_halves(x.half + at, n), remainder = load_some_halves(x.remainder + at, n);
  } else {
    for (int i = 0; i < 4; ++i)
      if (first_lane() + i < n) {
        const int64_t from = place_of(x, at + first_lane() + i);
        half.h[i] = x.half[from], remainder.h[i] = x.remainder[from];
      }
  }
  F16 value;
  for (int i = 0; i < 4; ++i) value.f[i] = joined(half.h[i], static_cast<int16_t>(remainder.h[i]));
  return value;
}

// Zeros the padding after the columns of a row.
static __global__ void __launch_bounds__(block_threads)
    clear_padding_kernel(const StepState* state, uint16_t* matrix, int64_t rows, int64_t columns,
                         int64_t stride) {
  if (state->skip != 0) return;
  const int64_t padding = stride - columns, threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = thread_of_grid(); i < rows * padding; i += threads)
    matrix[i / padding * stride + columns + i % padding] = 0;
}

// ---- epilogues of products; pairs of columns begin at even columns, and the second column may be padding
struct MuonSums {
  const StepState* state;
  const float* scale;
};  // Null scale: 1.
STW_DEVICE bool is_idle(const MuonSums& sums) { return sums.state->skip != 0; }
STW_DEVICE float scale_of(const MuonSums& sums) { return sums.scale != nullptr ? *sums.scale : 1.0f; }
STW_DEVICE Float2 halves_at(const uint16_t* matrix, int64_t at) {
  const auto both = load_vector<uint32_t>(matrix + at);
  return {{from_bf16(static_cast<uint16_t>(both)), from_bf16(static_cast<uint16_t>(both >> 16))}};
}
STW_DEVICE void store_symmetric(const Product& out, int64_t row, int64_t column, Float2 x, int64_t n,
                                bool mirrored) {
  const uint32_t both = pack_halves<DType::bf16>(x.f[0], n > 1 ? x.f[1] : 0.0f);
  auto* const matrix = static_cast<uint16_t*>(out.c);
  store_vector(matrix + row * out.c_stride + column, both);
  if (!mirrored) return;
  // A mirrored tile lies below the diagonal, so all of its columns are inside the matrix.
  matrix[column * out.c_stride + row] = static_cast<uint16_t>(both);
  matrix[(column + 1) * out.c_stride + row] = static_cast<uint16_t>(both >> 16);
}

// A of X, or of the unscaled X of the first iteration.
struct GramSums : TriangleSums, MuonSums {};
STW_DEVICE void process_sums(const GramSums& sums, const Product& out, int64_t row, int64_t column, Float2 x,
                             int64_t n, bool mirrored) {
  const float scale = scale_of(sums);  // Its square may be subnormal.
  store_symmetric(out, row, column, {{x.f[0] * scale * scale, x.f[1] * scale * scale}}, n, mirrored);
}

struct PolynomialSums : TriangleSums, MuonSums {
  const uint16_t* gram;
};  // `gram` has the stride of the output.
STW_DEVICE void process_sums(const PolynomialSums& sums, const Product& out, int64_t row, int64_t column,
                             Float2 x, int64_t n, bool mirrored) {
  const Float2 gram = halves_at(sums.gram, row * out.c_stride + column);
  store_symmetric(out, row, column,
                  {{fma1(muon_c, x.f[0], muon_b * gram.f[0]), fma1(muon_c, x.f[1], muon_b * gram.f[1])}}, n,
                  mirrored);
}

// No other thread reads or writes the remainders of these elements, but the old halves are still operands of
// other blocks. `half` and `remainder` both have the stride of the output.
struct StepSums : EpilogueSums, MuonSums {
  const uint16_t* half;
  uint16_t* remainder;
};
STW_DEVICE void process_sums(const StepSums& sums, const Product& out, int64_t row, int64_t column, Float2 x,
                             int64_t n, bool) {
  const int64_t at = row * out.c_stride + column;
  const auto half = load_vector<uint32_t>(sums.half + at),
             remainder = load_vector<uint32_t>(sums.remainder + at);
  const float scale = scale_of(sums);
  uint32_t halves = 0, remainders = 0;
  for (int i = 0; i < 2 && i < n; ++i) {
    const float before =
        joined(static_cast<uint16_t>(half >> 16 * i), static_cast<int16_t>(remainder >> 16 * i));
    const uint32_t bits = bits_of(fma1(muon_a, before, x.f[i]) * scale);
    halves |= static_cast<uint32_t>(nearest_half(bits)) << 16 * i;
    remainders |= (bits & 0xffffu) << 16 * i;
  }
  store_vector(static_cast<uint16_t*>(out.c) + at, halves);
  store_vector(sums.remainder + at, remainders);
}

template <Contiguous a_along, Contiguous b_along, class Sums>
static void multiply(const Launch& l, const Product& product, const Sums& sums) {
  const Products all = {DType::bf16, DType::bf16, DType::bf16, DType::f32, DType::f32,
                        false,       1,           0,           {product}};
  tensor_product_of<a_along, b_along, Summing::totals, DType::bf16>(l, all, sums);  // Chains of chain_terms.
}

void tensor_muon(const Launch& l, const UpdateArgs& args) {
  const MuonLayout layout = muon_layout(args);
  assert(static_cast<uint64_t>(layout.bytes) <= l.workspace_bytes);
  const auto at = [&](int64_t bytes) { return static_cast<char*>(l.workspace) + bytes; };
  const auto halves_at = [&](int64_t bytes) { return reinterpret_cast<uint16_t*>(at(bytes)); };
  uint16_t *x = halves_at(0),
           *next = halves_at(layout.next_at), *const remainder = halves_at(layout.remainder_at);
  uint16_t *const gram = halves_at(layout.gram_at), *const polynomial = halves_at(layout.polynomial_at);
  float *const sums = reinterpret_cast<float*>(at(layout.sums_at)), *const scale = reinterpret_cast<float*>(
                                                                        at(layout.scale_at));
  const int64_t rows = layout.rows, columns = layout.columns, shorter = layout.shorter,
                longer = layout.longer;
  const int64_t stride = layout.stride, square_stride = layout.square_stride;

  const auto clear_padding = [&](uint16_t* matrix, int64_t height, int64_t width, int64_t line) {
    if (line > width)
      launch(l, clear_padding_kernel, blocks_for(height * (line - width), block_threads), block_threads, 0,
             args.state, matrix, height, width, line);
  };
  for (uint16_t* matrix : {x, next}) clear_padding(matrix, rows, columns, stride);
  for (uint16_t* matrix : {gram, polynomial}) clear_padding(matrix, shorter, shorter, square_stride);
  mix_momentum(l, args, layout, SplitX{x, remainder, columns, stride}, sums, scale);

  constexpr auto depth = Contiguous::depth, output = Contiguous::output;
  for (int i = 0; i < muon_iterations; ++i) {
    const MuonSums scaled = {args.state, i == 0 ? scale : nullptr};
    const Product gram_product = {shorter, shorter,       longer, x,       x,      stride,
                                  stride,  square_stride, gram,   nullptr, nullptr};
    if (layout.wide) multiply<depth, depth>(l, gram_product, GramSums{{}, scaled});
    else multiply<output, output>(l, gram_product, GramSums{{}, scaled});
    multiply<depth, depth>(l,
                           Product{shorter, shorter, shorter, gram, gram, square_stride, square_stride,
                                   square_stride, polynomial, nullptr, nullptr},
                           PolynomialSums{{}, {args.state, nullptr}, gram});
    const StepSums step = {{}, scaled, x, remainder};
    if (layout.wide)
      multiply<depth, output>(l,
                              Product{rows, columns, shorter, polynomial, x, square_stride, stride, stride,
                                      next, nullptr, nullptr},
                              step);
    else
      multiply<depth, depth>(l,
                             Product{rows, columns, shorter, x, polynomial, stride, square_stride, stride,
                                     next, nullptr, nullptr},
                             step);
    uint16_t* const swap = x;
    x = next;
    next = swap;
  }
  update_by(l, args, layout, SplitX{x, remainder, columns, stride});
}

}  // namespace stw::kernels::cuda
