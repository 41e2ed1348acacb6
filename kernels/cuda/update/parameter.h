// The fp32 master of a parameter in all its storage formats, and the grid of the update kernels.
#pragma once
#include "kernels/common/master_bits.h"
#include "kernels/common/update_scalars.h"
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/groups.h"
#include "kernels/cuda/random_words.h"

namespace stw::kernels::cuda {

enum class Storage : uint8_t { f32, f16, split16, split8, stochastic };
template <Storage s>
struct ParameterStoredAs {
  static constexpr Storage storage = s;
};
// Calls body(tag) with the parameter's storage as the constant tag.storage, to choose an instance of a
// kernel.
template <class Body>
void for_storage(const UpdateArgs& args, const Body& body) {
  if (args.dtype == DType::f32) return body(ParameterStoredAs<Storage::f32>{});
  if (args.dtype == DType::f16) return body(ParameterStoredAs<Storage::f16>{});
  if (args.short_remainder != nullptr) return body(ParameterStoredAs<Storage::split8>{});
  if (args.remainder != nullptr) return body(ParameterStoredAs<Storage::split16>{});
  return body(ParameterStoredAs<Storage::stochastic>{});
}

// for_gradient does the same for the type of the parameter's gradient, tag.dtype; for_update does it for
// both. A kernel begins with args.gradient_dtype = gradient, so that the compiler knows the type: a test in
// the loop would take registers.
template <class Body>
void for_gradient(const UpdateArgs& args, const Body& body) {
  if (args.gradient_dtype == DType::bf16) return body(StoredAs<DType::bf16>{});
  return body(StoredAs<DType::f32>{});
}
template <class Body>
void for_update(const UpdateArgs& args, const Body& body) {
  for_gradient(args, [&](auto gradient) { for_storage(args, [&](auto stored) { body(stored, gradient); }); });
}

template <Storage storage, class N>
STW_DEVICE F16 load_parameter(const UpdateArgs& args, int64_t at, N n) {
  if constexpr (storage == Storage::f32) return load_group(args.parameter, DType::f32, at, n);
  if constexpr (storage == Storage::f16) return load_group(args.master, DType::f32, at, n);
  if constexpr (storage == Storage::stochastic) return load_group(args.parameter, DType::bf16, at, n);
  const Halves half = load_some_halves(static_cast<const uint16_t*>(args.parameter) + at, n);
  F16 p = zero();
  if constexpr (storage == Storage::split8) {
    const Bytes remainder = load_some_bytes(reinterpret_cast<const uint8_t*>(args.short_remainder) + at, n);
    for (int i = 0; i < 4; ++i) p.f[i] = joined_short(half.h[i], static_cast<int8_t>(remainder.b[i]));
  }
  if constexpr (storage == Storage::split16) {
    const Halves remainder = load_some_halves(reinterpret_cast<const uint16_t*>(args.remainder) + at, n);
    for (int i = 0; i < 4; ++i) p.f[i] = joined(half.h[i], static_cast<int16_t>(remainder.h[i]));
  }
  return p;
}

// A thread's four elements take one block of random numbers, or two if the parameter begins within a block.
STW_DEVICE Halves stochastic_halves(const UpdateArgs& args, int64_t at, F16 p) {
  const int64_t first = args.first_element + at + first_lane();
  const Philox4 low = rounding_block(args, first / 8);
  Philox4 high = low;
  if ((first + 3) / 8 != first / 8) high = rounding_block(args, first / 8 + 1);
  Halves half;
  for (int i = 0; i < 4; ++i) {
    const int64_t element = first + i;
    const int64_t k = element % 8 / 2;
    half.h[i] =
        stochastic_half(p.f[i], element / 8 == first / 8 ? word_of(low, k) : word_of(high, k), element);
  }
  return half;
}

template <Storage storage, class N>
STW_DEVICE void store_parameter(const UpdateArgs& args, int64_t at, F16 p, N n) {
  if constexpr (storage == Storage::f32) return store_group(args.parameter, DType::f32, at, p, n);
  if constexpr (storage == Storage::f16) {
    store_group(args.master, DType::f32, at, p, n);
    return store_group(args.parameter, DType::f16, at, p, n);
  }
  Halves half = {};
  if constexpr (storage == Storage::split8) {
    Bytes remainder;
    for (int i = 0; i < 4; ++i) {
      const uint32_t bits = rounded_to_24(bits_of(p.f[i]));
      half.h[i] = short_half_of(bits);
      remainder.b[i] = static_cast<uint8_t>(short_remainder_of(bits));
    }
    store_some_bytes(reinterpret_cast<uint8_t*>(args.short_remainder) + at, remainder, n);
  }
  if constexpr (storage == Storage::split16) {
    Halves remainder;
    for (int i = 0; i < 4; ++i) {
      half.h[i] = nearest_half(bits_of(p.f[i]));
      remainder.h[i] = static_cast<uint16_t>(remainder_of(bits_of(p.f[i])));
    }
    store_some_halves(reinterpret_cast<uint16_t*>(args.remainder) + at, remainder, n);
  }
  if constexpr (storage == Storage::stochastic) half = stochastic_halves(args, at, p);
  store_some_halves(static_cast<uint16_t*>(args.parameter) + at, half, n);
}

// Whether all whole groups of a parameter, its gradients and its 32-bit states may be accessed as FullGroup.
inline bool update_vectors(const UpdateArgs& args) {
  return vectors_at(args.parameter, args.dtype) && vectors_at(args.remainder, DType::bf16) &&
         vectors_at(args.master, DType::f32) && reinterpret_cast<uintptr_t>(args.short_remainder) % 4 == 0 &&
         vectors_at(args.gradient[0], args.gradient_dtype) &&
         vectors_at(args.gradient[1], args.gradient_dtype) && vectors_at(args.first, DType::f32) &&
         vectors_at(args.second, DType::f32);
}

// The sum of a parameter's gradients in two steps: the load, and the arithmetic.
struct Gradients {
  F16 first, second;
};
template <class N>
STW_DEVICE Gradients load_gradients(const UpdateArgs& args, int64_t at, N n) {
  Gradients g = {load_gradient(args, 0, at, n), zero()};
  if (args.gradient[1] != nullptr) g.second = load_gradient(args, 1, at, n);
  return g;
}
STW_DEVICE F16 scaled_sum(const UpdateArgs& args, F16 coefficient, const Gradients& g) {
  return mul(coefficient, args.gradient[1] != nullptr ? add(g.first, g.second) : g.first);
}

// The scalars of an update come from double arithmetic, which is slow on some devices. One thread of a block
// computes them for all threads, which meet here. Scalars consists of F16s, each with the same number in all
// lanes.
template <class Scalars, class Make>
STW_DEVICE Scalars once_a_block(const Make& make) {
  constexpr int count = sizeof(Scalars) / sizeof(F16);
  STW_SHARED(float, values, count);
  if (threadIdx.x == 0) {
    const Scalars made = make();
    STW_UNROLL
    for (int k = 0; k < count; ++k) values[k] = reinterpret_cast<const F16*>(&made)[k].f[0];
  }
  __syncthreads();
  Scalars all;
  STW_UNROLL
  for (int k = 0; k < count; ++k) reinterpret_cast<F16*>(&all)[k] = splat(values[k]);
  return all;
}

// Because every block computes its scalars, the number of blocks is limited. The limit still keeps any device
// busy.
inline constexpr int64_t most_update_blocks = 2048;
inline int blocks_for_update(int64_t tasks, int64_t tasks_of_block) {
  const int blocks = blocks_for(tasks, tasks_of_block);
  return blocks < most_update_blocks ? blocks : static_cast<int>(most_update_blocks);
}
inline int blocks_for_update(int64_t count) { return blocks_for_update(count, block_quads * 16); }

}  // namespace stw::kernels::cuda
