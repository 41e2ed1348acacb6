// Copies of some rows of every sample, and the gradient. A task has some rows of the output.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

namespace {

void copy_row(const TakeRowsArgs& args, int64_t from, int64_t to) {
  for_groups(0, args.features, [&](int64_t i, int64_t n) {
    store_group(args.y.data, args.y.dtype, to * args.features + i,
                load_group(args.x.data, args.x.dtype, from * args.features + i, n), n);
  });
}

void clear_row(const TakeRowsArgs& args, int64_t row) {
  for_groups(0, args.features, [&](int64_t i, int64_t n) {
    store_group(args.y.data, args.y.dtype, row * args.features + i, zero(), n);
  });
}

}  // namespace

void take_rows(const Launch& launch, const TakeRowsArgs& args) {
  for_rows(launch, args.samples * args.taken, args.features, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      copy_row(args, row / args.taken * args.rows_per_sample + max(0, (int64_t)args.places[row]), row);
  });
}

void take_rows_gradient(const Launch& launch, const TakeRowsArgs& args) {
  for_rows(launch, args.samples * args.rows_per_sample, args.features, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin, next = -1; row < end; ++row) {
      const int64_t sample = row / args.rows_per_sample, place = row % args.rows_per_sample,
                    last = (sample + 1) * args.taken;
      if (next < 0 || place == 0) next = sample * args.taken;
      while (next < last && args.places[next] >= 0 && args.places[next] < place) ++next;
      if (next < last && args.places[next] == place) copy_row(args, next, row);
      else clear_row(args, row);
    }
  });
}

}  // namespace stw::kernels::STW_ISA
