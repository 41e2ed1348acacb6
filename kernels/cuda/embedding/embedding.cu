// y = table[token], plus positions[position] if the model learns positions. Bound by memory: rows of the
// table are read in pieces of at least 32 bytes (8-bit codes: 16). A thread has two groups in flight
// (ahead.h).
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/groups.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/whole_number.h"

namespace stw::kernels::cuda {

// A whole group lies in one block of codes.
STW_DEVICE float scale_of(const float* scales, int64_t at, int, FullGroup) {
  return scales[at / weight_block];
}
STW_DEVICE float scale_of(const float* scales, int64_t at, int i, int64_t) {
  return scales[(at + first_lane() + i) / weight_block];
}
// n elements of a row of the table, from element `at` of the table on.
template <bool codes>
STW_DEVICE F16 table_group(const EmbeddingArgs& args, DType dtype, int64_t at, auto n) {
  if constexpr (!codes) return load_copied(args.table, dtype, at, n);
  const Bytes code = load_some_bytes(static_cast<const uint8_t*>(args.table) + at, n);
  F16 x = zero();
  STW_UNROLL
  for (int i = 0; i < 4; ++i)
    if (first_lane() + i < n) x.f[i] = whole_number(code.b[i]) * scale_of(args.table_scales, at, i, n);
  return dtype == DType::f32 ? x : widened(rounded(x, dtype), dtype);
}

template <class Stored, bool codes>
static __global__ void __launch_bounds__(block_threads)
    embedding_kernel(EmbeddingArgs args, RowGroups groups, Divisor rows_per_sample) {
  const DType weight_dtype = Stored::of(args.weight_dtype), y_dtype = Stored::of(args.y.dtype);
  const int64_t start = args.state == nullptr ? 0 : static_cast<int64_t>(args.state->position);
  const bool has_positions = args.positions != nullptr;
  struct Terms {
    F16 token, position;
  };
  for_groups_of_rows_ahead(
      groups,
      [&](int64_t row, int64_t i, auto n) {
        Terms t = {table_group<codes>(args, weight_dtype, args.tokens[row] * args.features + i, n), zero()};
        if (!has_positions) return t;
        const int64_t position =
            args.position_ids != nullptr
                ? args.position_ids[row]
                : start + row - quotient(static_cast<int>(row), rows_per_sample) * rows_per_sample.number;
        t.position = load_group(args.positions, weight_dtype, position * args.features + i, n);
        return t;
      },
      [&](const Terms& t, int64_t row, int64_t i, auto n) {
        store_copied(args.y.data, y_dtype, row * args.features + i,
                     has_positions ? add(t.token, t.position) : t.token, n);
      });
}

void embedding(const Launch& l, const EmbeddingArgs& args) {
  // The codes begin at a multiple of 16 bytes, as tables do.
  const bool codes = args.table_scales != nullptr;
  const bool vectors = (codes || vectors_at(args.table, args.weight_dtype)) &&
                       vectors_at(args.positions, args.weight_dtype) && vectors_at(args.y.data, args.y.dtype);
  const RowGroups groups = row_groups(args.rows, args.features, vectors);
  for_dtypes({args.weight_dtype, args.y.dtype}, [&](auto stored) {
    launch(l, codes ? embedding_kernel<decltype(stored), true> : embedding_kernel<decltype(stored), false>,
           blocks_for_ahead(groups), block_threads, 0, args, groups, divisor_of(args.rows_per_sample));
  });
}

}  // namespace stw::kernels::cuda
