// Means of documents and their gradient. A task has some rows and some of their columns. A row that begins a
// document reads the whole document; any other row is only written.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

namespace {

// Columns of a row whose sums stay in registers.
constexpr int64_t groups_together = 4, columns_together = 16 * groups_together;

// Writes the mean of `count` rows from `first` on, in columns [begin, end), to row `first` of y.
void store_mean(const DocumentMeanArgs& args, int64_t first, int64_t count, int64_t begin, int64_t end) {
  F16 total[groups_together], chain[groups_together];
  for (F16& sum : total) sum = zero();
  for (int64_t from = 0; from < count; from += chain_terms) {
    for (F16& sum : chain) sum = zero();
    for (int64_t row = first + from; row < first + min(count, from + chain_terms); ++row)
      for_groups(begin, end, [&](int64_t i, int64_t n) {
        F16& sum = chain[(i - begin) / 16];
        sum = add(sum, load_group(args.x.data, args.x.dtype, row * args.features + i, n));
      });
    for (int64_t k = 0; k < groups_together; ++k) total[k] = add(total[k], chain[k]);
  }
  for_groups(begin, end, [&](int64_t i, int64_t n) {
    store_group(args.y.data, args.y.dtype, first * args.features + i,
                div(total[(i - begin) / 16], splat((float)count)), n);
  });
}

}  // namespace

void document_mean(const Launch& launch, const DocumentMeanArgs& args) {
  const int64_t parts = ceil_div(args.features, columns_together);
  parallel_for(launch, ceil_div(args.rows, token_tile) * parts, [&](int64_t task, int) {
    const int64_t tile = task / parts * token_tile, begin = task % parts * columns_together,
                  end = min(args.features, begin + columns_together);
    for (int64_t row = tile; row < min(args.rows, tile + token_tile); ++row) {
      if (args.positions[row] == 0) store_mean(args, row, args.following[row] + (int64_t)1, begin, end);
      else
        for_groups(begin, end, [&](int64_t i, int64_t n) {
          store_group(args.y.data, args.y.dtype, row * args.features + i, zero(), n);
        });
    }
  });
}

void document_mean_gradient(const Launch& launch, const DocumentMeanArgs& args) {
  for_rows(launch, args.rows, args.features, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = row - args.positions[row];
      const F16 count = splat((float)((int64_t)args.positions[row] + args.following[row] + 1));
      for_groups(0, args.features, [&](int64_t i, int64_t n) {
        store_group(args.y.data, args.y.dtype, row * args.features + i,
                    div(load_group(args.x.data, args.x.dtype, first * args.features + i, n), count), n);
      });
    }
  });
}

}  // namespace stw::kernels::STW_ISA
