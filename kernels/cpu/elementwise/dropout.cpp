// Inverted dropout, forward and backward. The mask is not kept but drawn again from the counters of philox.h,
// so it costs no memory and does not depend on how the batch was cut.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/philox8.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

namespace {

// Elements [begin, end) of one sample, which starts at `base`. A factor of 0 selects 0 instead of
// multiplying, so that a dropped element becomes 0 even if it is not finite.
void drop(const DropoutArgs& args, const Dropout& dropout, int64_t base, int64_t begin, int64_t end) {
  constexpr int64_t batch = 256;
  float factors[batch + 32];
  for (int64_t first = begin; first < end; first += batch) {
    int64_t count = min(batch, end - first);
    dropout_factors(dropout, first, count, factors);
    for_groups(0, count, [&](int64_t at, int64_t n) {
      F16 x = load_group(args.x.data, args.x.dtype, base + first + at, n);
      F16 factor = load_some(factors + at, n);
      F16 y = select_less(zero(), factor, mul(x, factor), zero());
      store_group(args.y.data, args.y.dtype, base + first + at, y, n);
    });
  }
}

}  // namespace

void dropout(const Launch& launch, const DropoutArgs& args) {
  if (args.p == 0.0f) {
    if (args.x.data == args.y.data) return;
    for_elements(launch, args.samples * args.per_sample, [&](int64_t begin, int64_t end) {
      for_groups(begin, end, [&](int64_t at, int64_t n) {
        store_group(args.y.data, args.y.dtype, at, load_group(args.x.data, args.x.dtype, at, n), n);
      });
    });
    return;
  }
  // A task lies within one sample because the random numbers are counted within samples.
  bool serial = args.samples * args.per_sample <= serial_elements;
  int64_t step = serial ? max(1, args.per_sample) : task_elements;
  int64_t per_sample = ceil_div(args.per_sample, step);
  auto body = [&](int64_t task, int) {
    int64_t sample = task / per_sample, begin = task % per_sample * step;
    drop(args, dropout_of(args.p, args.stream, *args.state, sample), sample * args.per_sample, begin,
         min(args.per_sample, begin + step));
  };
  if (serial) {
    for (int64_t task = 0; task < args.samples * per_sample; ++task) body(task, 0);
  } else {
    parallel_for(launch, args.samples * per_sample, body);
  }
}

}  // namespace stw::kernels::STW_ISA
