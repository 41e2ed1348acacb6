// Cross entropy of 16-bit logits in an order of additions of its own (CrossEntropyArgs::fast): a block has a row. One pass finds the
// maximum together with the sum of exponentials, which it rescales where the maximum grows (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018); a second one, over a row that the second-level cache still holds, writes the gradient.
//
// Sixteen threads a row, which the CPU's order allows, wait for memory most of the time, and so many rows at once are more than that
// cache holds: each of their three passes reads memory. Here two blocks a multiprocessor have 264 rows under way on an H200, 26 MB of
// its 50 with a vocabulary of 50,257, and 32 KB of loads each. Floor: the logits read and the gradient written once. Exponentials are
// the special function unit's.
#include "kernels/common/cross_entropy_row.h"
#include "kernels/cuda/block_cross_entropy.h"
#include "kernels/cuda/lanes.h"

namespace stw::kernels::cuda {

static constexpr int block_row_threads = 512, vector_lanes = 8, vectors_ahead = 4;

template <DType dtype>
STW_DEVICE void widen(const uint4& v, float (&x)[vector_lanes]) {
  const uint32_t words[4] = {v.x, v.y, v.z, v.w};
  STW_UNROLL for (int i = 0; i < vector_lanes; ++i) {
    const auto half = static_cast<uint16_t>(words[i / 2] >> (i % 2 * 16));
    x[i] = dtype == DType::bf16 ? from_bf16(half) : from_f16(half);
  }
}

// Of some logits: their maximum, Σ e^(x - maximum), and their sum.
struct Normalizer { float largest = -infinity, sum = 0, total = 0; };
STW_DEVICE float share(float largest, float of_all) { return largest == -infinity ? 0.0f : fast_exp2((largest - of_all) * log2_of_e); }
STW_DEVICE Normalizer both(const Normalizer& a, const Normalizer& b) {
  const float largest = a.largest > b.largest ? a.largest : b.largest;
  return {largest, a.sum * share(a.largest, largest) + b.sum * share(b.largest, largest), a.total + b.total};
}

// body(vector, what it holds) for a thread's vectors of a row, several loads under way.
template <class Body>
STW_DEVICE void for_vectors(const uint16_t* row, int vectors, const Body& body) {
  const int step = static_cast<int>(blockDim.x);
  STW_ROLLED for (int first = static_cast<int>(threadIdx.x); first < vectors; first += vectors_ahead * step) {
    uint4 values[vectors_ahead];
    STW_UNROLL for (int k = 0; k < vectors_ahead; ++k) values[k] = load_vector<uint4>(row + (first + k * step < vectors ? first + k * step : first) * vector_lanes);
    loads_are_issued();
    STW_UNROLL for (int k = 0; k < vectors_ahead; ++k)
      if (first + k * step < vectors) body(first + k * step, values[k]);
  }
}

template <DType dtype>
static __global__ void __launch_bounds__(block_row_threads) block_cross_entropy_kernel(CrossEntropyArgs args) {
  STW_SHARED(Normalizer, of_warp, block_row_threads / 32);
  const LossTerms terms = loss_terms(args);
  const int count = static_cast<int>(args.vocabulary), vectors = (count + vector_lanes - 1) / vector_lanes, padded = static_cast<int>(args.stride / vector_lanes);
  for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    uint16_t* const data = static_cast<uint16_t*>(args.logits.data) + row * args.stride;
    const int target = args.targets[row];
    const float weight = args.weights == nullptr ? 1.0f : args.weights[row];
    const bool counts = target != ignored_target && weight != 0;   // 0 times what a row holds may be a NaN
    if (counts) {
      Normalizer own;
      for_vectors(data, vectors, [&](int vector, const uint4& v) {
        float x[vector_lanes];
        widen<dtype>(v, x);
        const int n = count - vector * vector_lanes;   // of its lanes are there
        float largest = own.largest, sum = 0;
        STW_UNROLL for (int i = 0; i < vector_lanes; ++i)
          if (i < n) {
            largest = x[i] > largest ? x[i] : largest;
            own.total += x[i];
          }
        STW_UNROLL for (int i = 0; i < vector_lanes; ++i) sum += i < n ? fast_exp2((x[i] - largest) * log2_of_e) : 0.0f;
        own.sum = own.sum * share(own.largest, largest) + sum;
        own.largest = largest;
      });
      STW_UNROLL for (int lanes = 1; lanes < 32; lanes *= 2)
        own = both(own, {__shfl_xor_sync(all_lanes, own.largest, lanes), __shfl_xor_sync(all_lanes, own.sum, lanes), __shfl_xor_sync(all_lanes, own.total, lanes)});
      if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = own;
      __syncthreads();
      Normalizer all = of_warp[0];
      for (int warp = 1; warp < static_cast<int>(blockDim.x) / 32; ++warp) all = both(all, of_warp[warp]);
      const float target_logit = load1(data, dtype, target);
      const RowEnd end = row_end(terms, all.largest, all.sum, all.total / static_cast<float>(count), target_logit, weight);
      __syncthreads();   // all have read: the target's logit too, which may become a gradient, and the warps' sums
      if (threadIdx.x == 0) args.token_loss[row] = end.loss;
      if (args.gradient)
        for_vectors(data, vectors, [&](int vector, const uint4& v) {
          float x[vector_lanes];
          widen<dtype>(v, x);
          uint32_t words[4];
          STW_UNROLL for (int i = 0; i < vector_lanes; ++i) {
            const int column = vector * vector_lanes + i;
            x[i] = fast_exp2((x[i] - all.largest) * log2_of_e) * end.factor + end.shared;
            if (column == target) x[i] = end.target;
            if (column >= count) x[i] = 0;
          }
          STW_UNROLL for (int i = 0; i < 4; ++i) words[i] = pack_halves<dtype>(x[2 * i], x[2 * i + 1]);
          store_global16(data + vector * vector_lanes, uint4{words[0], words[1], words[2], words[3]});
        });
    } else if (threadIdx.x == 0) {
      args.token_loss[row] = 0;
    }
    if (args.gradient)
      for (int vector = (counts ? vectors : 0) + static_cast<int>(threadIdx.x); vector < padded; vector += static_cast<int>(blockDim.x))
        store_global16(data + vector * vector_lanes, uint4{0, 0, 0, 0});
  }
}

bool block_cross_entropy_takes(const CrossEntropyArgs& args) {
  return args.fast && args.logits.dtype != DType::f32 && args.stride % vector_lanes == 0 && reinterpret_cast<uintptr_t>(args.logits.data) % 16 == 0;
}

void block_cross_entropy(const Launch& l, const CrossEntropyArgs& args) {
  const int64_t wanted = ceil_div(args.vocabulary, int64_t{vector_lanes * vectors_ahead * 32}) * 32;   // threads that have something to load
  const auto threads = static_cast<unsigned>(wanted < block_row_threads ? wanted : block_row_threads);
  const auto blocks = static_cast<unsigned>(args.rows < largest_blocks ? args.rows : largest_blocks);
  if (args.logits.dtype == DType::bf16) launch(l, block_cross_entropy_kernel<DType::bf16>, blocks, threads, 0, args);
  else launch(l, block_cross_entropy_kernel<DType::f16>, blocks, threads, 0, args);
}

}  // namespace stw::kernels::cuda
