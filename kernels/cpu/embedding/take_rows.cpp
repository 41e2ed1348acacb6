// Copies of some rows of every sample, and the gradient. A task has some rows of the output.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

namespace {

int64_t bytes_of_row(const TakeRowsArgs& args) { return args.features * element_bytes(args.y.dtype); }
char* row_of_y(const TakeRowsArgs& args, int64_t row) {
  return (char*)args.y.data + row * bytes_of_row(args);
}

void copy_row(const TakeRowsArgs& args, int64_t from, int64_t to) {
  memcpy(row_of_y(args, to), (const char*)args.x.data + from * bytes_of_row(args),
         (size_t)bytes_of_row(args));
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
      else memset(row_of_y(args, row), 0, (size_t)bytes_of_row(args));
    }
  });
}

}  // namespace stw::kernels::STW_ISA
