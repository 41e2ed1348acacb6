// RMSNorm of every head of queries and keys, before rotary positions, with one weight for all query heads and
// one for all key heads. Values are copied if y is not x. A quad has a head; its second pass over the head
// finds it in the first-level cache.
//
// The lower bound is the time to read and write the heads: 2·rows·(query_heads + kv_heads)·head_dim elements
// if y is x. This is 201 MB of bf16 for 16384 rows of 16 and 8 heads of 128, 60 µs at 3.35 TB/s. A quad has
// four groups of a head in flight, 8 bytes a thread: 32 KB for an SM with 1024 threads, where 15 KB would
// suffice (ahead.h). A warp's eight heads of 128 are about 450 PTX instructions: 25 µs in total. These
// figures are calculated, not measured.
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/norm/qk_heads.h"

namespace stw::kernels::cuda {

template <class Stored, int groups>
static __global__ void __launch_bounds__(block_threads)
    qk_norm_kernel(QkNormArgs args, QkHeads heads, Divisor heads_of_row, bool vectors) {
  const DType x_dtype = Stored::of(args.x.dtype), y_dtype = Stored::of(args.y.dtype),
              weight_dtype = Stored::of(args.weight_dtype);
  for_tasks_of_grid(args.rows * heads_of_row.number, [&](int64_t task) {
    const int64_t row = quotient(task, heads_of_row);
    const int head = static_cast<int>(task - row * heads_of_row.number);
    const int64_t at = (row * heads.all() + head) * args.head_dim;
    if (head >= heads.normed()) return copy_head<Stored, groups>(args.x, args.y, at, args.head_dim, vectors);
    const F16 rstd = splat(head_rstd<groups>(args, x_dtype, at, vectors));
    const void* const x = element(static_cast<const void*>(args.x.data), x_dtype, at);
    void* const y = element(args.y.data, y_dtype, at);
    const void* const weight = head < heads.queries ? args.weight[0] : args.weight[1];
    struct Operands {
      F16 x, w;
    };
    for_head_groups<groups>(
        args.head_dim, vectors,
        [&](int i, auto n) {
          return Operands{load_group(x, x_dtype, i, n), load_group(weight, weight_dtype, i, n)};
        },
        [&](const Operands& o, int i, auto n) {
          store_group(y, y_dtype, i, mul(mul(o.x, rstd), add(o.w, splat(args.weight_offset))), n);
        });
  });
}

void qk_norm(const Launch& l, const QkNormArgs& args) {
  const QkHeads heads = {args.query_heads, args.kv_heads};
  const Divisor heads_of_row = divisor_of(args.x.data == args.y.data ? heads.normed() : heads.all());
  const bool vectors = vectors_at(args.x.data, args.x.dtype, args.head_dim) &&
                       vectors_at(args.y.data, args.y.dtype, args.head_dim) &&
                       vectors_at(args.weight[0], args.weight_dtype) &&
                       vectors_at(args.weight[1], args.weight_dtype);
  for_heads({args.x.dtype, args.y.dtype, args.weight_dtype}, args.head_dim, vectors,
            [&](auto stored, auto groups) {
              launch(l, qk_norm_kernel<decltype(stored), groups.number>,
                     blocks_for_rows(args.rows * heads_of_row.number), block_threads, 0, args, heads,
                     heads_of_row, vectors);
            });
}

}  // namespace stw::kernels::cuda
