// Settings that change the trained bits. The user requests them; the planner never decides them. They are
// hashed into checkpoints.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/graph/tensor.h"

namespace stw {

enum class Precision : uint8_t { fp32, bf16, fp16 };
inline constexpr int precision_count = 3;
enum class Optimizer : uint8_t { adamw, sgd, lion, muon, adafactor };
inline constexpr int optimizer_count = 5;

// How much of the fp32 master of a bf16 parameter is kept in addition to the bf16 copy: the lower 16 bits,
// the upper 8 of these, or nothing (the update then rounds stochastically). Other precisions keep the whole
// master.
enum class Master : uint8_t { exact, short_remainder, stochastic };
inline constexpr int master_count = 3;

// The format in which the gradients of blocks' matrices (not those of adapters) are summed. All other
// gradients are fp32. bf16: rounded stochastically after every sample, so that the size of micro-batches
// changes no bit (kernels.h).
enum class Gradients : uint8_t { fp32, bf16 };
inline constexpr int gradients_count = 2;
inline constexpr const char* gradients_names[gradients_count] = {"fp32", "bf16"};

// The kernels that compute matrix products. The choice fixes the order of their sums. portable: one chain of
// multiply-adds, as on the CPU. tensor, wgmma: a GPU's tensor cores, on 16-bit values, by mma.sync or by
// Hopper's wgmma. cublaslt: NVIDIA's library. For products that the library does not compute, `cublaslt` uses
// mma.sync and `cublaslt_wgmma` uses wgmma; the latter also uses wgmma for exact weight gradients.
enum class Kernels : uint8_t { portable, tensor, cublaslt, wgmma, cublaslt_wgmma };
inline constexpr int kernels_count = 5;
inline constexpr const char* kernels_names[kernels_count] = {"portable", "tensor", "cublaslt", "wgmma",
                                                             "cublaslt-wgmma"};
inline bool uses_cublaslt(Kernels k) { return k == Kernels::cublaslt || k == Kernels::cublaslt_wgmma; }
inline bool uses_wgmma(Kernels k) { return k == Kernels::wgmma || k == Kernels::cublaslt_wgmma; }

// The kernels that compute attention over whole samples of 16-bit values: those above (own), or NVIDIA's
// cuDNN.
enum class Attention : uint8_t { own, cudnn };
inline constexpr int attention_count = 2;
inline constexpr const char* attention_names[attention_count] = {"own", "cudnn"};

// The format of the frozen matrices of a model with adapters: the run's precision, or codes of 4 or 8 bits
// (quantize.h).
enum class Quantize : uint8_t { none, nf4, int8 };
inline constexpr int quantize_count = 3;
inline constexpr const char* quantize_names[quantize_count] = {"none", "nf4", "int8"};

// The value with that name. Empty if there is none.
template <class Enum, int count>
std::optional<Enum> named(const char* const (&names)[count], std::string_view name) {
  for (int i = 0; i < count; ++i)
    if (name == names[i]) return static_cast<Enum>(i);
  return std::nullopt;
}

// Settings for all parameters that a pattern names (parameter_groups.h). Settings without a value stay
// unchanged.
struct ParameterGroup {
  std::string pattern;
  std::optional<bool> frozen;     // no gradient, no state, no update
  std::optional<double> rate;     // factor of the learning rate
  std::optional<double> decay;    // weight decay
  std::optional<int> state_bits;  // bits of optimizer states: 8 or 32
  bool operator==(const ParameterGroup&) const = default;
};

// The numerics that a request fixes. The planner adds the rest (Numerics).
struct RequestedNumerics {
  Precision precision = Precision::fp32;
  Optimizer optimizer = Optimizer::adamw;
  Master master = Master::exact;
  Gradients gradients = Gradients::fp32;
  // The parameters of blocks are updated inside the backward pass, so their gradients are not kept. Requires
  // one micro-step, no clipping, and no fp16.
  bool fused_update = false;
  Attention attention = Attention::own;
  Quantize quantize = Quantize::none;             // of blocks
  Quantize quantize_embeddings = Quantize::none;  // of the token embedding and the head; not nf4
  std::vector<ParameterGroup> groups;             // later ones win
  GraphInputs inputs;                             // in addition to tokens and targets
  bool operator==(const RequestedNumerics&) const = default;
};

struct Numerics : RequestedNumerics {
  int state_bits = 32;  // 8: block-wise, for tensors that are large enough (optimizer.h)
  bool exact = true;    // contract E3 (CONTRIBUTING.md); only cuBLASLt's kernels can break it
  Kernels kernels = Kernels::portable;
  bool operator==(const Numerics&) const = default;
};

inline constexpr const char* precision_names[precision_count] = {"fp32", "bf16", "fp16"};
inline const char* name_of(Precision p) { return precision_names[static_cast<size_t>(p)]; }
inline Format compute_format(Precision p) {
  constexpr Format formats[precision_count] = {Format::f32, Format::bf16, Format::f16};
  return formats[static_cast<size_t>(p)];
}
// The peak rate of a device that bounds the arithmetic of an op. fp32: the rate of fp32. mma, wgmma: the
// rates that our mma.sync and wgmma kernels reach on tensor cores. library: the rate that libraries reach
// there.
enum class Peak : uint8_t { fp32, mma, wgmma, library };
inline const char* gradients_name(const Numerics& n) {
  return gradients_names[static_cast<size_t>(n.gradients)];
}
inline const char* kernels_name(const Numerics& n) { return kernels_names[static_cast<size_t>(n.kernels)]; }
inline const char* attention_name(const Numerics& n) {
  return attention_names[static_cast<size_t>(n.attention)];
}
inline const char* name_of(Quantize q) { return quantize_names[static_cast<size_t>(q)]; }
// The form of a parameter's fp32 master, in words.
inline const char* master_name(const Numerics& n) {
  constexpr const char* of_bf16[master_count] = {"split", "split8", "stochastic"};
  return n.precision == Precision::bf16   ? of_bf16[static_cast<size_t>(n.master)]
         : n.precision == Precision::fp32 ? "none"
                                          : "fp32";
}

}  // namespace stw
