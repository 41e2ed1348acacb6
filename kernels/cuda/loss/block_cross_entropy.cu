// Cross entropy of 16-bit logits in an order of additions of its own (CrossEntropyArgs::fast): a block takes
// a row. The first pass finds the maximum and the sum of exponentials together, and rescales the sum when the
// maximum grows (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). The second pass
// writes the gradient.
//
// In the CPU's order, only sixteen threads can work on a row. These wait for memory most of the time, so many
// rows must be in progress at once. They exceed the cache, so each of the three passes reads memory. Here, a
// row lies in shared memory, and both passes take it from there. At a vocabulary of 50,257 it has 100 KB, and
// a multiprocessor of compute capability 9.0 has two rows. A thread copies the vectors that it computes with,
// so only its own copies have to be waited for. As soon as it has stored a vector's gradient, it begins to
// copy the vector of the next row to the same place. A row that does not fit is read twice. Then no more rows
// are in progress than half of the second-level cache holds, or one a multiprocessor: half, because the cache
// of an H100 has two halves, each of which keeps a copy of what its multiprocessors read.
//
// The lower bound is the time to read the logits and to write the gradient once. Exponentials come from the
// special function unit: the two of an element take two thirds of the time in which its 4 bytes are moved. A
// logit takes about 8 operations in each pass; an H200 issues 24 in that time. So code for whole vectors has
// no conditions, and one warp handles the rest of a row.
#include "kernels/common/cross_entropy_row.h"
#include "kernels/cuda/loss/block_cross_entropy.h"
#include "kernels/lanes/gpu_lanes.h"

namespace stw::kernels::cuda {

static constexpr int block_row_threads = 512, vector_lanes = 8, vectors_ahead = 4;

// The numbers of a vector as fp32. Each of its words holds two of them.
template <DType dtype>
STW_DEVICE void widen(const uint4& v, float (&x)[vector_lanes]) {
  const uint32_t words[4] = {v.x, v.y, v.z, v.w};
  STW_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float2 two = unpack_halves<dtype>(words[i]);
    x[2 * i] = two.x, x[2 * i + 1] = two.y;
  }
}
// The first n numbers of a vector, and `others` in place of the rest.
STW_DEVICE uint4 first_of(const uint4& v, int n, uint32_t others) {
  const auto word = [&](uint32_t x, int at) {
    return at + 1 < n ? x : at < n ? (x & 0xffffu) | (others & 0xffff0000u) : others;
  };
  return {word(v.x, 0), word(v.y, 2), word(v.z, 4), word(v.w, 6)};
}
// A vector with number k replaced by a value, which both halves of `repeated_value` hold.
STW_DEVICE uint4 with_lane(const uint4& v, int k, uint32_t repeated_value) {
  const uint32_t mask = k % 2 == 0 ? 0xffffu : 0xffff0000u;
  const auto word = [&](uint32_t x, int i) { return k / 2 == i ? (x & ~mask) | (repeated_value & mask) : x; };
  return {word(v.x, 0), word(v.y, 1), word(v.z, 2), word(v.w, 3)};
}
template <DType dtype>
inline constexpr uint32_t two_minus_infinities = dtype == DType::bf16 ? 0xff80ff80u : 0xfc00fc00u;

// The partial result for some logits x: largest = max(x)·log2(e), sum = Σ 2^(x·log2(e) - largest), total = Σ
// x. The rounding of the maximum cancels out of the gradient and adds at most half an ulp of the maximum to
// the loss. The initial maximum is below every logit.
struct Normalizer {
  float largest = -1e38f, sum = 0, total = 0;
};
STW_DEVICE float power(float x, float largest) { return fast_exp2(fma1(x, log2_of_e, -largest)); }
STW_DEVICE Normalizer both(const Normalizer& a, const Normalizer& b) {
  const float largest = larger(a.largest, b.largest);
  return {largest, a.sum * fast_exp2(a.largest - largest) + b.sum * fast_exp2(b.largest - largest),
          a.total + b.total};
}

// Calls body(vector, its contents) for a thread's vectors of a row, with several loads in flight.
template <class Body>
STW_DEVICE void for_vectors(const uint16_t* row, int vectors, const Body& body) {
  const int step = static_cast<int>(blockDim.x);
  STW_ROLLED
  for (int first = static_cast<int>(threadIdx.x); first < vectors; first += vectors_ahead * step) {
    uint4 values[vectors_ahead];
    STW_UNROLL
    for (int k = 0; k < vectors_ahead; ++k)
      values[k] =
          load_vector<uint4>(row + (first + k * step < vectors ? first + k * step : first) * vector_lanes);
    fence_loads();
    STW_UNROLL
    for (int k = 0; k < vectors_ahead; ++k)
      if (first + k * step < vectors) body(first + k * step, values[k]);
  }
}
// Begins to copy a thread's vectors of a row to shared memory.
STW_DEVICE void copy_vectors(uint16_t* to, const uint16_t* row, int vectors) {
  for (int vector = static_cast<int>(threadIdx.x); vector < vectors; vector += static_cast<int>(blockDim.x))
    copy_async16(to + vector * vector_lanes, row + vector * vector_lanes);
}

// has_mean: the mean of the logits is needed (label smoothing).
template <DType dtype, bool has_mean>
STW_DEVICE Normalizer normalizer_of(const uint16_t* row, int vectors, int count) {
  Normalizer normalizer;
  for_vectors(row, vectors, [&](int vector, uint4 v) {
    const int n = count - vector * vector_lanes;  // Lanes that exist.
    float x[vector_lanes];
    if constexpr (has_mean) {
      widen<dtype>(n < vector_lanes ? first_of(v, n, 0) : v, x);
      STW_UNROLL
      for (int i = 0; i < vector_lanes; ++i) normalizer.total += x[i];
    }
    if (n < vector_lanes) v = first_of(v, n, two_minus_infinities<dtype>);
    widen<dtype>(v, x);
    float most = x[0], sum = 0;
    STW_UNROLL
    for (int i = 1; i < vector_lanes; ++i) most = larger(most, x[i]);
    const float largest = larger(normalizer.largest, most * log2_of_e);
    STW_UNROLL
    for (int i = 0; i < vector_lanes; ++i) sum += power(x[i], largest);
    normalizer.sum = fma1(normalizer.sum, fast_exp2(normalizer.largest - largest), sum);
    normalizer.largest = largest;
  });
  return normalizer;
}

// The gradient of a vector's logits.
template <DType dtype>
STW_DEVICE uint4 gradient_of(const uint4& v, float largest, const RowEnd& end) {
  float x[vector_lanes];
  widen<dtype>(v, x);
  STW_UNROLL
  for (int i = 0; i < vector_lanes; ++i) x[i] = fma1(power(x[i], largest), end.factor, end.shared);
  return {pack_halves<dtype>(x[0], x[1]), pack_halves<dtype>(x[2], x[3]), pack_halves<dtype>(x[4], x[5]),
          pack_halves<dtype>(x[6], x[7])};
}

// The start of dynamic shared memory. The row follows, if it is kept there.
struct alignas(16) SharedRow {
  Normalizer of_warp[block_row_threads / 32];
  RowEnd end;
  float largest;
};

// Whether a row is computed. For others, loss and gradient are 0. A weight of 0 times a NaN would be NaN.
STW_DEVICE bool row_counts(const CrossEntropyArgs& args, int64_t row) {
  return args.targets[row] != ignored_target && (args.weights == nullptr || args.weights[row] != 0);
}

// kept: both passes take the row from shared memory. Then the gradient is wanted.
template <DType dtype, bool kept>
static __global__ void __launch_bounds__(block_row_threads, 3)
    block_cross_entropy_kernel(CrossEntropyArgs args) {
  STW_DYNAMIC_SHARED(SharedRow, shared);
  const LossTerms terms = loss_terms(args);
  const int count = static_cast<int>(args.vocabulary), vectors = (count + vector_lanes - 1) / vector_lanes,
            padded = static_cast<int>(args.stride / vector_lanes);
  bool is_copied = false;  // Or is being copied.
  for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    uint16_t* const data = static_cast<uint16_t*>(args.logits.data) + row * args.stride;
    uint16_t* const logits = kept ? reinterpret_cast<uint16_t*>(shared + 1) : data;
    const bool counts = row_counts(args, row);
    if (counts) {
      const int target = args.targets[row];
      if constexpr (kept) {
        if (!is_copied) copy_vectors(logits, data, vectors);
        commit_copies();
        wait_copies<0>();  // The others' copies are read after the barrier below.
      }
      Normalizer normalizer = terms.smoothing != 0 ? normalizer_of<dtype, true>(logits, vectors, count)
                                                   : normalizer_of<dtype, false>(logits, vectors, count);
      STW_UNROLL
      for (int lanes = 1; lanes < 32; lanes *= 2)
        normalizer = both(normalizer, {__shfl_xor_sync(all_lanes, normalizer.largest, lanes),
                                       __shfl_xor_sync(all_lanes, normalizer.sum, lanes),
                                       __shfl_xor_sync(all_lanes, normalizer.total, lanes)});
      if (threadIdx.x % 32 == 0) shared->of_warp[threadIdx.x / 32] = normalizer;
      __syncthreads();
      if (threadIdx.x < 32) {  // One warp, so that the schedulers of the others have time for other rows.
        Normalizer all = shared->of_warp[0];
        STW_ROLLED
        for (int warp = 1; warp < static_cast<int>(blockDim.x) / 32; ++warp)
          all = both(all, shared->of_warp[warp]);
        const RowEnd end = row_end(
            terms, all.largest / log2_of_e, all.sum, all.total / static_cast<float>(count),
            unpack_halves<dtype>(logits[target]).x, args.weights == nullptr ? 1.0f : args.weights[row]);
        if (threadIdx.x == 0)
          args.token_loss[row] = end.loss, shared->end = end, shared->largest = all.largest;
      }
      // The target's logit, which may become a gradient, and the warps' sums have been read.
      __syncthreads();
      if (args.gradient) {
        const RowEnd end = shared->end;
        const float largest = shared->largest;
        const int target_vector = target / vector_lanes;
        const uint32_t target_words = pack_halves<dtype>(end.target, end.target);
        const int64_t next = row + gridDim.x;
        is_copied = kept && next < args.rows && row_counts(args, next);
        const uint16_t* const next_data = data + static_cast<int64_t>(gridDim.x) * args.stride;
        for_vectors(logits, vectors, [&](int vector, const uint4& v) {
          uint4 gradient = gradient_of<dtype>(v, largest, end);
          if (vector == target_vector) gradient = with_lane(gradient, target % vector_lanes, target_words);
          const int n = count - vector * vector_lanes;
          if (n < vector_lanes) gradient = first_of(gradient, n, 0);
          store_global16(data + vector * vector_lanes, gradient);
          if (is_copied) copy_async16(logits + vector * vector_lanes, next_data + vector * vector_lanes);
        });
      }
      // The next row may overwrite of_warp at once, which has been read. It overwrites `end` after a barrier
      // that all threads pass after they have read it.
    } else if (threadIdx.x == 0) {
      args.token_loss[row] = 0;
    }
    if (args.gradient)
      for (int vector = (counts ? vectors : 0) + static_cast<int>(threadIdx.x); vector < padded;
           vector += static_cast<int>(blockDim.x))
        store_global16(data + vector * vector_lanes, uint4{0, 0, 0, 0});
  }
}

bool block_cross_entropy_takes(const CrossEntropyArgs& args) {
  return args.fast && args.logits.dtype != DType::f32 && args.stride % vector_lanes == 0 &&
         reinterpret_cast<uintptr_t>(args.logits.data) % 16 == 0;
}

// An attribute of the current device; 0 if it cannot be had.
static int64_t of_device(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  cudaGetDevice(&device);
  return cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess ? value : 0;
}
template <DType dtype>
static void launch_rows(const Launch& l, const CrossEntropyArgs& args, unsigned threads) {
  const auto blocks = [&](int64_t most) {
    return static_cast<unsigned>(args.rows < most ? args.rows : most);
  };
  if (!args.gradient)  // Read once.
    return launch(l, block_cross_entropy_kernel<dtype, false>, blocks(largest_blocks), threads,
                  sizeof(SharedRow), args);
  const int64_t multiprocessors = multiprocessors_of_device(),
                bytes = ceil_div(args.vocabulary, int64_t{vector_lanes}) * int64_t{sizeof(uint4)};
  constexpr int64_t reserved = 1024, resident_threads = 1536;  // Bytes of each block; three of 512 threads.
  const int64_t needed = bytes + static_cast<int64_t>(sizeof(SharedRow)),
                fitting = of_device(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / (needed + reserved),
                resident = resident_threads / threads;
  if (fitting > 0)
    return launch(l, block_cross_entropy_kernel<dtype, true>,
                  blocks(multiprocessors * (fitting < resident ? fitting : resident)), threads,
                  static_cast<size_t>(needed), args);
  const bool two = 2 * multiprocessors * bytes <= of_device(cudaDevAttrL2CacheSize) / 2;
  launch(l, block_cross_entropy_kernel<dtype, false>, blocks(multiprocessors * (two ? 2 : 1)), threads,
         sizeof(SharedRow), args);
}

void block_cross_entropy(const Launch& l, const CrossEntropyArgs& args) {
  // Threads that have something to load.
  const int64_t wanted = ceil_div(args.vocabulary, int64_t{vector_lanes * vectors_ahead * 32}) * 32;
  const auto threads = static_cast<unsigned>(wanted < block_row_threads ? wanted : block_row_threads);
  if (args.logits.dtype == DType::bf16) launch_rows<DType::bf16>(l, args, threads);
  else launch_rows<DType::f16>(l, args, threads);
}

}  // namespace stw::kernels::cuda
