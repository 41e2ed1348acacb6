// Expected speeds of these kernels on an H100, estimated before any of them ran on one.
#pragma once

namespace stw::probe {

// Estimates for GPT-2 124M with samples of 1,024 tokens and micro-batches of 258, in nanoseconds per token at
// 1.7 GHz. For matrix products they count the instructions of a tile's slice, and assume 48 bytes per cycle
// and multiprocessor from the second-level cache, and no overlap between blocks. For attention they count its
// instructions.
struct Expectation {
  const char* kind;
  const char* what;
  double expected, pessimistic;  // nanoseconds per token
  double flops;                  // per token
};
inline constexpr double block_weights = 12.0 * (768 * 2304 + 768 * 768 + 2 * 768 * 3072),
                        head_weights = 768.0 * 50257;
// causal: half of 4·T·width in each layer
inline constexpr double attention_forward_flops = 12.0 * 2 * 1024 * 768;
inline constexpr Expectation expectations[] = {
    {"forward", "products of the blocks, forward", 276, 338, 2 * block_weights},
    {"dX", "products of the blocks, input gradients", 266, 329, 2 * block_weights},
    {"dW", "products of the blocks, weight gradients", 345, 395, 2 * block_weights},
    {"head", "the head's three products", 354, 440, 6 * head_weights},
    // expected: 220 to 310; pessimistic: 310 to 360
    {"attention", "attention, forward and backward", 265, 335, 3.5 * attention_forward_flops},
};
// Bandwidth of elementwise kernels and norms as a share of the device's own copy, and that of an update,
// which reads and writes several arrays.
inline constexpr double bandwidth_share = 0.85, update_share = 1 / 1.3;
// Published measurements of an H100: a copy on the device, and a bf16 product of 8192³ by cuBLASLt with
// random data.
inline constexpr double measured_copy = 3.0e12, measured_product = 798e12;

inline const Expectation* expectation_of(const char* kind) {
  for (const Expectation& e : expectations)
    if (__builtin_strcmp(e.kind, kind) == 0) return &e;
  return nullptr;
}

}  // namespace stw::probe
