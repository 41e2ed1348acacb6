// Copies the rows of a micro-batch, and their tokens, to their places among those of the global batch.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

void keep_rows(const Launch& launch, const KeepRowsArgs& args) {
  const auto place = (int64_t)(args.state->first_sample - args.first_sample) * args.rows_per_sample;
  const int64_t row_bytes = args.features * element_bytes(args.y.dtype);
  for_rows(launch, args.rows, args.features, [&](int64_t begin, int64_t end) {
    const auto count = (size_t)(end - begin);
    memcpy(args.kept_tokens + place + begin, args.tokens + begin, count * sizeof(int32_t));
    memcpy((char*)args.kept + (place + begin) * row_bytes, (const char*)args.y.data + begin * row_bytes,
           count * (size_t)row_bytes);
  });
}

}  // namespace stw::kernels::STW_ISA
