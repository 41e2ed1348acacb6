// Numerics are requested, never decided by the planner: they change the trained bits and are hashed into checkpoints.
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

// What of a bf16 parameter's fp32 master is kept beside the half that computes: the 16 bits that are missing; the upper 8 of
// them; nothing, with stochastic rounding. Other precisions have their whole master.
enum class Master : uint8_t { exact, short_remainder, stochastic };
inline constexpr int master_count = 3;

// What the matrices of blocks, but for adapters, sum their gradients up in; all other gradients are fp32. bf16: rounded stochastically
// after every sample, so that the cut into micro-batches changes no bit (kernels.h).
enum class Gradients : uint8_t { fp32, bf16 };
inline constexpr int gradients_count = 2;
inline constexpr const char* gradients_names[gradients_count] = {"fp32", "bf16"};

// What adds up matrix products, and so in which order: one chain of multiply-adds as on the CPU; a GPU's tensor cores, of 16-bit
// values, by mma.sync or by Hopper's wgmma; NVIDIA's library. The library does not compute everything: the rest is computed by mma.sync
// with `cublaslt`, by wgmma with `cublaslt_wgmma`, whose exact weight gradients are wgmma's too.
enum class Kernels : uint8_t { portable, tensor, cublaslt, wgmma, cublaslt_wgmma };
inline constexpr int kernels_count = 5;
inline constexpr const char* kernels_names[kernels_count] = {"portable", "tensor", "cublaslt", "wgmma", "cublaslt-wgmma"};
inline bool uses_cublaslt(Kernels k) { return k == Kernels::cublaslt || k == Kernels::cublaslt_wgmma; }
inline bool uses_wgmma(Kernels k) { return k == Kernels::wgmma || k == Kernels::cublaslt_wgmma; }

// Who computes attention over whole samples of 16-bit values: the kernels above; NVIDIA's cuDNN.
enum class Attention : uint8_t { own, cudnn };
inline constexpr int attention_count = 2;
inline constexpr const char* attention_names[attention_count] = {"own", "cudnn"};

// What matrices below adapters are stored as: in the precision of the run; as codes of 4 or 8 bits (quantize.h).
enum class Quantize : uint8_t { none, nf4, int8 };
inline constexpr int quantize_count = 3;
inline constexpr const char* quantize_names[quantize_count] = {"none", "nf4", "int8"};

// The value with that name; nothing: there is none.
template <class Enum, int count>
std::optional<Enum> named(const char* const (&names)[count], std::string_view name) {
  for (int i = 0; i < count; ++i)
    if (name == names[i]) return static_cast<Enum>(i);
  return std::nullopt;
}

// Settings of all parameters that a pattern names (parameter_groups.h). What is not set stays as it is.
struct ParameterGroup {
  std::string pattern;
  std::optional<bool> frozen;    // neither gradient nor state, and not updated
  std::optional<double> rate;    // factor of the learning rate
  std::optional<double> decay;   // weight decay
  std::optional<int> state_bits; // 32: although the others' states have 8
  bool operator==(const ParameterGroup&) const = default;
};

struct Numerics {
  Precision precision = Precision::fp32;
  Optimizer optimizer = Optimizer::adamw;
  Master master = Master::exact;
  Gradients gradients = Gradients::fp32;
  bool fused_update = false;   // the parameters of blocks are updated inside the backward pass, which keeps no gradient of them:
                               // one micro-step, no clipping, no fp16
  int state_bits = 32;   // 8: block-wise, for tensors that are large enough (optimizer.h)
  bool exact = true;     // contract E3; all kernels but cuBLASLt's know no other way
  Kernels kernels = Kernels::portable;
  Attention attention = Attention::own;
  Quantize quantize = Quantize::none;              // of blocks
  Quantize quantize_embeddings = Quantize::none;   // of the table of tokens and the head; not nf4
  std::vector<ParameterGroup> groups;   // later ones win
  GraphInputs inputs;    // beside tokens and targets
  bool operator==(const Numerics&) const = default;
};

inline constexpr const char* precision_names[precision_count] = {"fp32", "bf16", "fp16"};
inline const char* name_of(Precision p) { return precision_names[static_cast<size_t>(p)]; }
inline Format compute_format(Precision p) {
  constexpr Format formats[precision_count] = {Format::f32, Format::bf16, Format::f16};
  return formats[static_cast<size_t>(p)];
}
// The peak of a device that bounds the arithmetic of ops: that of fp32; what our kernels with mma.sync reach of the tensor cores; what our
// kernels with wgmma reach of them; that of the tensor cores, for libraries.
enum class Peak : uint8_t { fp32, mma, wgmma, tensor };
inline const char* gradients_name(const Numerics& n) { return gradients_names[static_cast<size_t>(n.gradients)]; }
inline const char* kernels_name(const Numerics& n) { return kernels_names[static_cast<size_t>(n.kernels)]; }
inline const char* attention_name(const Numerics& n) { return attention_names[static_cast<size_t>(n.attention)]; }
inline const char* name_of(Quantize q) { return quantize_names[static_cast<size_t>(q)]; }
// How the fp32 master of a parameter is kept beside its compute copy.
inline const char* master_name(const Numerics& n) {
  constexpr const char* of_bf16[master_count] = {"split", "split8", "stochastic"};
  return n.precision == Precision::bf16 ? of_bf16[static_cast<size_t>(n.master)] : n.precision == Precision::fp32 ? "none" : "fp32";
}

}  // namespace stw
