// Converts the codes of a frozen matrix to values for the products that follow. Bound by memory: it reads
// 0.56 bytes (nf4) or 1.06 bytes (int8) an element and writes 2 or 4. A table of 2 KiB gives two adjacent nf4
// elements at once.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

namespace {

struct Nf4Pairs {
  float of_byte[256][2];
  constexpr Nf4Pairs() : of_byte() {
    for (int b = 0; b < 256; ++b)
      of_byte[b][0] = nf4_values.of[b >> 4], of_byte[b][1] = nf4_values.of[b & 15];
  }
};
constexpr Nf4Pairs nf4_pairs;

// Elements [begin, end) of a row of the part. The index of the first one in the matrix is a multiple of 16.
template <WeightCodes codes>
void dequantize_range(const DequantizeArgs& args, int64_t row, int64_t begin, int64_t end) {
  const uint8_t* const code = (const uint8_t*)args.data;
  const float* const scales = (const float*)(code + scales_begin(codes, args.count));
  const int64_t from = args.first + row * args.stride, to = row * args.columns;
  for_groups(begin, end, [&](int64_t column, int64_t n) {
    const int64_t at = from + column;
    float value[16];
    if (codes == WeightCodes::nf4)
      for (int64_t i = 0; i < n; i += 2)
        memcpy(value + i, nf4_pairs.of_byte[code[(at + i) / 2]], 2 * sizeof(float));
    else
      for (int64_t i = 0; i < n; ++i) value[i] = (float)(int8_t)code[at + i];
    const F16 x = n == 16 ? load(value) : load_some(value, n);
    store_group(args.y.data, args.y.dtype, to + column, mul(x, splat(scales[at / weight_block])), n);
  });
}
void dequantize_range(const DequantizeArgs& args, int64_t row, int64_t begin, int64_t end) {
  if (args.codes == WeightCodes::nf4) dequantize_range<WeightCodes::nf4>(args, row, begin, end);
  else dequantize_range<WeightCodes::int8>(args, row, begin, end);
}

}  // namespace

void dequantize(const Launch& launch, const DequantizeArgs& args) {
  assert(args.first % 16 == 0 && (args.rows <= 1 || (args.columns % 16 == 0 && args.stride % 16 == 0)));
  if (args.rows == 1)
    return for_elements(launch, args.columns,
                        [&](int64_t begin, int64_t end) { dequantize_range(args, 0, begin, end); });
  for_rows(launch, args.rows, args.columns, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) dequantize_range(args, row, 0, args.columns);
  });
}

}  // namespace stw::kernels::STW_ISA
