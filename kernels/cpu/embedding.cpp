// y = table[token], plus positions[position] where the model learns positions.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/split.h"

namespace stw::kernels::STW_ISA {

void embedding(const Launch& launch, const EmbeddingArgs& args) {
  const int64_t features = args.features, start = args.state == nullptr ? 0 : (int64_t)args.state->position;
  for_rows(launch, args.rows, features, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t position = args.position_ids != nullptr ? args.position_ids[row] : start + row % args.rows_per_sample;
      const int64_t word = args.tokens[row] * features, place = position * features;
      for_groups(0, features, [&](int64_t i, int64_t n) {
        F16 y = load_group(args.table, args.weight_dtype, word + i, n);
        if (args.positions != nullptr) y = add(y, load_group(args.positions, args.weight_dtype, place + i, n));
        store_group(args.y.data, args.y.dtype, row * features + i, y, n);
      });
    }
  });
}

}  // namespace stw::kernels::STW_ISA
