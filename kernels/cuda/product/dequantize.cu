// Converts the codes of a frozen matrix to values for the products that follow. Bound by memory: it reads
// 0.56 bytes (nf4) or 1.06 bytes (int8) an element and writes 2 or 4. In bf16 on an H100 (calculated), that
// is a quarter of the time of a product of 1,000 rows, a fifteenth of one of 4,000. A thread takes groups of
// eight adjacent elements, which it stores as 16 bytes (fp32: twice 16). It has four such groups, spaced by
// the block's threads, whose loads are in flight together (ahead.h). nf4 values are looked up in shared
// memory: sixteen numbers in sixteen banks.
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/whole_number.h"

namespace stw::kernels::cuda {

static constexpr int neighbours = 8, groups_of_thread = 4;
static __device__ constexpr Nf4Values nf4_values_of_device = nf4_values;

struct EightCodes {
  uint32_t word[2];
  float scale;
};  // nf4: only the first word.

template <WeightCodes codes>
STW_DEVICE EightCodes load_codes(const uint8_t* code, const float* scales, int64_t at) {
  if constexpr (codes == WeightCodes::nf4)
    return {{load_vector<uint32_t>(code + at / 2), 0}, scales[at / weight_block]};
  const uint2 v = load_vector<uint2>(code + at);
  return {{v.x, v.y}, scales[at / weight_block]};
}
template <WeightCodes codes>
STW_DEVICE float value_at(const EightCodes& eight, int i, const float* table) {
  if constexpr (codes == WeightCodes::nf4)
    return table[eight.word[0] >> (8 * (i / 2) + (i % 2 == 0 ? 4 : 0)) & 15u] * eight.scale;
  return whole_number(eight.word[i / 4] >> (8 * (i % 4))) * eight.scale;
}
template <DType dtype>
STW_DEVICE void store_eight(void* y, int64_t at, const float (&x)[neighbours]) {
  if constexpr (dtype == DType::f32) {
    store_global16(static_cast<float*>(y) + at, float4{x[0], x[1], x[2], x[3]});
    store_global16(static_cast<float*>(y) + at + 4, float4{x[4], x[5], x[6], x[7]});
  } else {
    store_global16(static_cast<uint16_t*>(y) + at,
                   uint4{pack_halves<dtype>(x[0], x[1]), pack_halves<dtype>(x[2], x[3]),
                         pack_halves<dtype>(x[4], x[5]), pack_halves<dtype>(x[6], x[7])});
  }
}

// `all`: elements of the part. `in_rows`: the part has several rows, of the length `row`.
template <WeightCodes codes, DType dtype, bool in_rows>
static __global__ void __launch_bounds__(block_threads)
    dequantize_kernel(DequantizeArgs args, int64_t all, Divisor row, bool vectors) {
  STW_SHARED(float, table, 16);
  if (codes == WeightCodes::nf4) {
    if (threadIdx.x < 16) table[threadIdx.x] = nf4_values_of_device.of[threadIdx.x];
    __syncthreads();
  }
  const auto* code = static_cast<const uint8_t*>(args.data);
  const auto* scales = reinterpret_cast<const float*>(code + scales_begin(codes, args.count));
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * (block_threads * neighbours * groups_of_thread) +
                        threadIdx.x * neighbours;
  constexpr int64_t apart = block_threads * neighbours;
  const auto place_of = [&](int64_t at) {  // From an index in the part to an index in the matrix.
    if constexpr (!in_rows) return args.first + at;
    const int line = quotient(static_cast<int>(at), row);
    return args.first + line * args.stride + (at - line * row.number);
  };
  const auto store_values = [&](const EightCodes& eight, int64_t at) {
    float x[neighbours];
    STW_UNROLL
    for (int i = 0; i < neighbours; ++i) x[i] = value_at<codes>(eight, i, table);
    store_eight<dtype>(args.y.data, at, x);
  };
  if (vectors && begin + (groups_of_thread - 1) * apart + neighbours <= all) {
    EightCodes eight[groups_of_thread];
    STW_UNROLL
    for (int k = 0; k < groups_of_thread; ++k)
      eight[k] = load_codes<codes>(code, scales, place_of(begin + k * apart));
    fence_loads();
    STW_UNROLL
    for (int k = 0; k < groups_of_thread; ++k) store_values(eight[k], begin + k * apart);
    return;
  }
  STW_ROLLED
  for (int k = 0; k < groups_of_thread; ++k) {
    if (vectors && begin + k * apart + neighbours <= all) {
      store_values(load_codes<codes>(code, scales, place_of(begin + k * apart)), begin + k * apart);
      continue;
    }
    STW_ROLLED
    for (int64_t at = begin + k * apart; at < begin + k * apart + neighbours && at < all; ++at) {
      const int64_t place = place_of(at);
      const uint32_t byte = code[codes == WeightCodes::nf4 ? place / 2 : place];
      const float value =
          codes == WeightCodes::nf4 ? table[byte >> (place % 2 == 0 ? 4 : 0) & 15u] : whole_number(byte);
      store1(args.y.data, dtype, at, value * scales[place / weight_block]);
    }
  }
}

void dequantize(const Launch& l, const DequantizeArgs& args) {
  assert(args.first % 16 == 0 && (args.rows <= 1 || (args.columns % 16 == 0 && args.stride % 16 == 0)));
  const int64_t all = args.rows * args.columns;
  if (all <= 0) return;
  const bool vectors = reinterpret_cast<uintptr_t>(args.y.data) % 16 == 0;
  const auto blocks = static_cast<unsigned>(ceil_div(all, block_threads * neighbours * groups_of_thread));
  const Divisor row = divisor_of(args.columns);
  for_dtype(args.y.dtype, [&](auto stored) {
    const auto of = [&](auto kernel) {
      launch(l, kernel, blocks, block_threads, 0, args, all, row, vectors);
    };
    if (args.codes == WeightCodes::nf4)
      of(args.rows > 1 ? dequantize_kernel<WeightCodes::nf4, stored.dtype, true>
                       : dequantize_kernel<WeightCodes::nf4, stored.dtype, false>);
    else
      of(args.rows > 1 ? dequantize_kernel<WeightCodes::int8, stored.dtype, true>
                       : dequantize_kernel<WeightCodes::int8, stored.dtype, false>);
  });
}

}  // namespace stw::kernels::cuda
