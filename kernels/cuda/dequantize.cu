// Codes of a frozen matrix to what they stand for, in front of the products that take it. Bound by memory: 0.56 bytes an element
// (nf4) or 1.06 (int8) are read for the 2 or 4 that are written; in bf16, reckoned, a quarter of the time of a product of 1,000 rows on an
// H100, a fifteenth of one of 4,000. A thread takes eight neighbours, which it stores in 16 bytes (fp32: twice), and four such groups, a block's threads apart,
// whose loads are under way together (ahead.h). nf4 is looked up in shared memory: sixteen numbers in sixteen banks.
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

static constexpr int neighbours = 8, groups_of_thread = 4;
static __device__ constexpr Nf4Values nf4_values_of_device = nf4_values;

struct EightCodes { uint32_t word[2]; float scale; };   // nf4: in the first word

template <WeightCodes codes>
STW_DEVICE EightCodes load_codes(const uint8_t* code, const float* scales, int64_t at) {
  if constexpr (codes == WeightCodes::nf4) return {{load_vector<uint32_t>(code + at / 2), 0}, scales[at / weight_block]};
  const uint2 v = load_vector<uint2>(code + at);
  return {{v.x, v.y}, scales[at / weight_block]};
}
// Whole numbers by the bits of a float beside 2^23: a conversion is slower.
STW_DEVICE float whole_number(uint32_t byte) { return float_of(0x4b000000u | ((byte & 0xffu) ^ 0x80u)) - 8388736.0f; }
template <WeightCodes codes>
STW_DEVICE float value_at(const EightCodes& eight, int i, const float* table) {
  if constexpr (codes == WeightCodes::nf4) return table[eight.word[0] >> (8 * (i / 2) + (i % 2 == 0 ? 4 : 0)) & 15u] * eight.scale;
  return whole_number(eight.word[i / 4] >> (8 * (i % 4))) * eight.scale;
}
template <DType dtype>
STW_DEVICE void store_eight(void* y, int64_t at, const float (&x)[neighbours]) {
  if constexpr (dtype == DType::f32) {
    store_global16(static_cast<float*>(y) + at, float4{x[0], x[1], x[2], x[3]});
    store_global16(static_cast<float*>(y) + at + 4, float4{x[4], x[5], x[6], x[7]});
  } else {
    store_global16(static_cast<uint16_t*>(y) + at, uint4{pack_halves<dtype>(x[0], x[1]), pack_halves<dtype>(x[2], x[3]),
                                                         pack_halves<dtype>(x[4], x[5]), pack_halves<dtype>(x[6], x[7])});
  }
}

template <WeightCodes codes, DType dtype>
static __global__ void __launch_bounds__(block_threads) dequantize_kernel(DequantizeArgs args, bool vectors) {
  STW_SHARED(float, table, 16);
  if (codes == WeightCodes::nf4) {
    if (threadIdx.x < 16) table[threadIdx.x] = nf4_values_of_device.of[threadIdx.x];
    __syncthreads();
  }
  const auto* code = static_cast<const uint8_t*>(args.data);
  const auto* scales = reinterpret_cast<const float*>(code + scales_begin(codes, args.count));
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * (block_threads * neighbours * groups_of_thread) + threadIdx.x * neighbours;
  constexpr int64_t apart = block_threads * neighbours;
  if (vectors && begin + (groups_of_thread - 1) * apart + neighbours <= args.count) {
    EightCodes eight[groups_of_thread];
    STW_UNROLL for (int k = 0; k < groups_of_thread; ++k) eight[k] = load_codes<codes>(code, scales, begin + k * apart);
    loads_are_issued();
    STW_UNROLL for (int k = 0; k < groups_of_thread; ++k) {
      float x[neighbours];
      STW_UNROLL for (int i = 0; i < neighbours; ++i) x[i] = value_at<codes>(eight[k], i, table);
      store_eight<dtype>(args.y.data, begin + k * apart, x);
    }
    return;
  }
  STW_ROLLED for (int k = 0; k < groups_of_thread; ++k)
    STW_ROLLED for (int64_t at = begin + k * apart; at < begin + k * apart + neighbours && at < args.count; ++at) {
      const uint32_t byte = code[codes == WeightCodes::nf4 ? at / 2 : at];
      const float value = codes == WeightCodes::nf4 ? table[byte >> (at % 2 == 0 ? 4 : 0) & 15u] : whole_number(byte);
      store1(args.y.data, dtype, at, value * scales[at / weight_block]);
    }
}

void dequantize(const Launch& l, const DequantizeArgs& args) {
  const bool vectors = reinterpret_cast<uintptr_t>(args.y.data) % 16 == 0;
  const auto blocks = static_cast<unsigned>(ceil_div(args.count, block_threads * neighbours * groups_of_thread));
  if (args.count <= 0) return;
  for_dtype(args.y.dtype, [&](auto stored) {
    if (args.codes == WeightCodes::nf4) launch(l, dequantize_kernel<WeightCodes::nf4, stored.dtype>, blocks, block_threads, 0, args, vectors);
    else launch(l, dequantize_kernel<WeightCodes::int8, stored.dtype>, blocks, block_threads, 0, args, vectors);
  });
}

}  // namespace stw::kernels::cuda
