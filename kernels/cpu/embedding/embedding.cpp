// y = table[token], plus positions[position] if the model learns positions. The table may be 8-bit codes.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

namespace {

F16 table_group(const EmbeddingArgs& args, int64_t at, int64_t n) {
  if (args.table_scales == nullptr) return load_group(args.table, args.weight_dtype, at, n);
  const int8_t* const code = (const int8_t*)args.table;
  float value[16] = {0};
  for (int64_t i = 0; i < n; ++i) value[i] = (float)code[at + i] * args.table_scales[(at + i) / weight_block];
  if (args.weight_dtype == DType::f32) return load(value);
  uint16_t stored[16];
  store16(stored, args.weight_dtype, 0, load(value));
  return load16(stored, args.weight_dtype, 0);
}

}  // namespace

void embedding(const Launch& launch, const EmbeddingArgs& args) {
  const int64_t features = args.features, start = args.state == nullptr ? 0 : (int64_t)args.state->position;
  for_rows(launch, args.rows, features, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t position =
          args.position_ids != nullptr ? args.position_ids[row] : start + row % args.rows_per_sample;
      const int64_t word = args.tokens[row] * features, place = position * features;
      for_groups(0, features, [&](int64_t i, int64_t n) {
        F16 y = table_group(args, word + i, n);
        if (args.positions != nullptr)
          y = add(y, load_group(args.positions, args.weight_dtype, place + i, n));
        store_group(args.y.data, args.y.dtype, row * features + i, y, n);
      });
    }
  });
}

}  // namespace stw::kernels::STW_ISA
