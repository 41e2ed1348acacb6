// The updates of several tensors in one launch. The hundred small tensors of a model would otherwise take a
// hundred launches of some microseconds each, while their memory traffic takes one microsecond. A launch
// takes tensors that are alike: stored in the same types, with the same rate and decay, so that they share
// one set of scalars. The differences are in the kernel's arguments, which the device reads as constants (at
// most 4 KB).
#pragma once
#include "kernels/cuda/product/tensor_chunks.h"
#include "kernels/cuda/update/parameter.h"

namespace stw::kernels::cuda {

struct UpdateTensor {
  void *parameter, *master_or_remainder;  // The Storage says which of the two.
  const void* gradient[2];
  void* state[4];  // first and second, or their codes and both absmax.
  int64_t count;
  int32_t first_chunk;  // Its number in the launch.
  uint32_t stream;
};
struct UpdateBatch {
  UpdateArgs common;  // The fields of its tensor are unused.
  int32_t tensors, chunks;
  bool vectors;  // update_vectors, and the codes are aligned.
  UpdateTensor tensor[most_together];
};
static_assert(sizeof(UpdateBatch) <= 4096, "the arguments of a kernel");

// Elements that a block takes at once: whole blocks of 8-bit states.
inline constexpr int64_t update_chunk = 16384;

inline void* master_or_remainder_of(const UpdateArgs& args) {
  if (args.dtype == DType::f16) return args.master;
  if (args.dtype == DType::f32) return nullptr;
  return args.short_remainder != nullptr ? static_cast<void*>(args.short_remainder) : args.remainder;
}

template <bool is_8bit>
bool batch_vectors(const UpdateArgs& args) {
  if (!update_vectors(args)) return false;
  return !is_8bit ||
         (reinterpret_cast<uintptr_t>(args.first_code) | reinterpret_cast<uintptr_t>(args.second_code)) % 4 ==
             0;
}

template <bool is_8bit>
bool are_alike(const UpdateArgs& a, const UpdateArgs& b) {
  return a.dtype == b.dtype && a.gradient_dtype == b.gradient_dtype &&
         (a.short_remainder == nullptr) == (b.short_remainder == nullptr) &&
         (master_or_remainder_of(a) == nullptr) == (master_or_remainder_of(b) == nullptr) &&
         (a.gradient[1] == nullptr) == (b.gradient[1] == nullptr) &&
         (a.first == nullptr) == (b.first == nullptr) && a.rate == b.rate && a.decay == b.decay &&
         a.first_element == b.first_element && batch_vectors<is_8bit>(a) == batch_vectors<is_8bit>(b);
}

// Calls launcher(stored, gradient, batch, blocks) for batches that cover a list. The tags `stored` and
// `gradient` choose the instance of the kernel.
template <bool is_8bit, class Launcher>
void launch_batches(const List<UpdateArgs>& list, const Launcher& launcher) {
  assert(list.count <= most_together);
  bool is_done[most_together] = {};
  for (int i = 0; i < list.count; ++i) {
    if (is_done[i]) continue;
    UpdateBatch batch = {};
    batch.common = list.first[i];
    batch.vectors = batch_vectors<is_8bit>(batch.common);
    for (int k = i; k < list.count; ++k) {
      const UpdateArgs& args = list.first[k];
      if (is_done[k] || !are_alike<is_8bit>(batch.common, args)) continue;
      is_done[k] = true;
      UpdateTensor& t = batch.tensor[batch.tensors++];
      t = {args.parameter,
           master_or_remainder_of(args),
           {args.gradient[0], args.gradient[1]},
           {args.first, args.second},
           args.count,
           batch.chunks,
           args.stream};
      if constexpr (is_8bit)
        t.state[0] = args.first_code, t.state[1] = args.second_code, t.state[2] = args.first_absmax,
        t.state[3] = args.second_absmax;
      batch.chunks += static_cast<int32_t>(ceil_div(args.count, update_chunk));
    }
    for_update(batch.common, [&](auto stored, auto gradient) {
      launcher(stored, gradient, batch, blocks_for_update(batch.chunks, 1));
    });
  }
}

template <Storage storage, DType gradient, bool is_8bit>
STW_DEVICE UpdateArgs args_of(const UpdateBatch& batch, int tensor) {
  const UpdateTensor& t = batch.tensor[tensor];
  UpdateArgs args = batch.common;
  args.gradient_dtype = gradient;
  args.count = t.count;
  args.stream = t.stream;
  args.parameter = t.parameter;
  if constexpr (storage == Storage::f16) args.master = static_cast<float*>(t.master_or_remainder);
  if constexpr (storage == Storage::split16) args.remainder = static_cast<int16_t*>(t.master_or_remainder);
  if constexpr (storage == Storage::split8)
    args.short_remainder = static_cast<int8_t*>(t.master_or_remainder);
  args.gradient[0] = t.gradient[0];
  args.gradient[1] = t.gradient[1];
  if constexpr (is_8bit) {
    args.first_code = static_cast<uint8_t*>(t.state[0]);
    args.second_code = static_cast<uint8_t*>(t.state[1]);
    args.first_absmax = static_cast<float*>(t.state[2]);
    args.second_absmax = static_cast<float*>(t.state[3]);
  } else {
    args.first = static_cast<float*>(t.state[0]);
    args.second = static_cast<float*>(t.state[1]);
  }
  return args;
}

// Calls body(args, begin, end) for this block's chunks, by all of its threads.
template <Storage storage, DType gradient, bool is_8bit = false, class Body>
STW_DEVICE void for_chunks_of(const UpdateBatch& batch, const Body& body) {
  for_chunks(batch, [&](int tensor, int chunk) {
    const UpdateArgs args = args_of<storage, gradient, is_8bit>(batch, tensor);
    const int64_t begin = (chunk - batch.tensor[tensor].first_chunk) * update_chunk;
    body(args, begin, min(args.count, begin + update_chunk));
  });
}

}  // namespace stw::kernels::cuda
