// Scratch memory of a call: the formulas of cpu_workspace.h and cuda_workspace.h for the arguments of a
// kernel.
#include "kernels/contract/attention_library.h"
#include "kernels/contract/cpu_workspace.h"
#include "kernels/contract/cuda_workspace.h"
#include "kernels/contract/kernels.h"

namespace stw::kernels {

namespace {

template <class Args>
int64_t features_of(const Args& args) {
  int64_t features = 0;
  for (int i = 0; i < args.parts; ++i) features += args.part[i].features;
  return features;
}
int64_t widest_of(const AdapterArgs& args) {
  int64_t widest = 0;
  for (int i = 0; i < args.parts; ++i)
    if (args.part[i].features > widest) widest = args.part[i].features;
  return widest;
}

}  // namespace

uint64_t linear_workspace(const LinearArgs& args, int threads) {
  return cpu_workspace::linear(args.rows, args.inputs, features_of(args), args.y.dtype, threads);
}
uint64_t linear_input_gradient_workspace(const LinearArgs& args, int threads) {
  return cpu_workspace::linear_input_gradient(args.rows, args.inputs, features_of(args), args.x.dtype,
                                              threads);
}
uint64_t linear_weight_gradient_workspace(const LinearArgs& args, int threads) {
  uint64_t most = 0;
  for (int i = 0; i < args.parts; ++i) {
    if (args.part[i].weight_gradient == nullptr) continue;
    const int64_t features = args.part[i].features, height = args.transposed ? args.inputs : features,
                  width = args.transposed ? features : args.inputs;
    const uint64_t bytes =
        cpu_workspace::linear_weight_gradient(args.rows, height, width, args.gradient_dtype, threads);
    if (bytes > most) most = bytes;
  }
  return most;
}
uint64_t linear_bias_gradient_workspace(const LinearArgs&, int) { return 0; }

uint64_t adapter_workspace(const AdapterArgs& args, int threads) {
  return cpu_workspace::adapter(args.rows, args.rank, widest_of(args), args.y.dtype, threads);
}
uint64_t adapter_input_gradient_workspace(const AdapterArgs& args, int threads) {
  return cpu_workspace::adapter_input_gradient(args.rows, args.rank, widest_of(args), args.low.dtype,
                                               threads);
}
uint64_t adapter_weight_gradient_workspace(const AdapterArgs& args, int threads) {
  return cpu_workspace::adapter_weight_gradient(args.rows, args.rank, widest_of(args), threads);
}

uint64_t norm_gradient_workspace(const NormArgs& args, int) {
  return cpu_workspace::norm_gradient(args.rows);
}
uint64_t qk_norm_gradient_workspace(const QkNormArgs& args, int) {
  return cpu_workspace::qk_norm_gradient(args.rows, args.query_heads, args.kv_heads);
}

uint64_t attention_workspace(const AttentionArgs& args, int threads) {
  return cpu_workspace::attention(args.rows_per_sample, args.head_dim, threads, args.relative.table_rows);
}
uint64_t attention_gradient_workspace(const AttentionArgs& args, int threads) {
  return cpu_workspace::attention_gradient(args.rows_per_sample, args.query_heads, args.kv_heads,
                                           args.head_dim, threads, args.relative.table_rows);
}
uint64_t attention_cached_workspace(const AttentionCachedArgs& args, int threads) {
  return cpu_workspace::attention(args.rows, args.head_dim, threads);
}

uint64_t embedding_gradient_workspace(const EmbeddingArgs& args, int) {
  return cpu_workspace::embedding_gradient(args.rows);
}
uint64_t kept_rows_gradient_workspace(const EmbeddingArgs& args, int) {
  return cpu_workspace::embedding_gradient(args.rows);
}
uint64_t cross_entropy_workspace(const CrossEntropyArgs&, int) { return 0; }
uint64_t loss_sum_workspace(const LossSumArgs& args, int) { return cpu_workspace::loss_sum(args.samples); }
uint64_t preference_workspace(const PreferenceArgs&, int) { return 0; }

uint64_t square_sum_workspace(const List<SquareSumArgs>& args, int) {
  uint64_t bytes = 0;
  for (int i = 0; i < args.count; ++i)
    bytes += cpu_workspace::square_sum(static_cast<uint64_t>(args.first[i].count));
  return bytes;
}
uint64_t muon_workspace(const UpdateArgs& args, int threads) {
  return cpu_workspace::muon(args.count / args.columns, args.columns, threads);
}
uint64_t adafactor_workspace(const UpdateArgs& args, int) {
  return cpu_workspace::adafactor(args.count, args.columns);
}

namespace cuda {

uint64_t linear_workspace(const LinearArgs&) { return 0; }
uint64_t linear_input_gradient_workspace(const LinearArgs& args) {
  return args.input_bias_gradient != nullptr ? linear_bias_gradient_workspace(input_bias_args(args)) : 0;
}
uint64_t linear_weight_gradient_workspace(const LinearArgs&) { return 0; }
// For all biases except those that are given as sums of tiles.
uint64_t linear_bias_gradient_workspace(const LinearArgs& args) {
  int64_t features = 0;
  for (int i = 0; i < args.parts; ++i)
    if (args.part[i].bias_gradient != nullptr && args.tile_sums == nullptr) features += args.part[i].features;
  const uint64_t further = args.further != nullptr ? linear_bias_gradient_workspace(*args.further) : 0;
  return cuda_workspace::tile_sums(args.rows, args.rows_per_sample, features) + further;
}

uint64_t adapter_workspace(const AdapterArgs&) { return 0; }
uint64_t adapter_input_gradient_workspace(const AdapterArgs&) { return 0; }
uint64_t adapter_weight_gradient_workspace(const AdapterArgs&) { return 0; }

uint64_t norm_gradient_workspace(const NormArgs& args) {
  const uint64_t biases = args.biases != nullptr ? linear_bias_gradient_workspace(*args.biases) : 0;
  return cuda_workspace::norm_gradient(args.rows, args.rows_per_sample, args.features) + biases;
}
uint64_t qk_norm_gradient_workspace(const QkNormArgs& args) {
  return cuda_workspace::qk_norm_gradient(args.rows, args.rows_per_sample, args.query_heads, args.kv_heads,
                                          args.head_dim);
}

uint64_t attention_workspace(const AttentionArgs& args) {
  return library_could_take(args) ? cuda_workspace::library_attention() : 0;
}
uint64_t attention_gradient_workspace(const AttentionArgs& args) {
  const RelativePositions& r = args.relative;
  if (r.table.data != nullptr && r.gradient != nullptr) {
    const bool on_tensor_cores = args.products != ProductKernels::chain && args.qkv.dtype != DType::f32 &&
                                 is_relative_tensor_head(args.head_dim);
    return cuda_workspace::relative_attention_gradient(
        args.samples * args.rows_per_sample, args.samples, args.query_heads, args.head_dim, r.table_rows,
        r.has_keys + r.has_queries,
        on_tensor_cores ? cuda_workspace::relative_sum_parts(args.rows_per_sample) : 1);
  }
  if (library_could_take(args)) return cuda_workspace::library_attention_gradient(shape_of(args));
  return cuda_workspace::attention_gradient(args.samples * args.rows_per_sample, args.query_heads);
}
uint64_t attention_cached_workspace(const AttentionCachedArgs&) { return 0; }

uint64_t embedding_gradient_workspace(const EmbeddingArgs& args) {
  return cuda_workspace::embedding_gradient(args.rows);
}
uint64_t kept_rows_gradient_workspace(const EmbeddingArgs& args) {
  return cuda_workspace::embedding_gradient(args.rows);
}
uint64_t cross_entropy_workspace(const CrossEntropyArgs&) { return 0; }
uint64_t loss_sum_workspace(const LossSumArgs& args) { return cuda_workspace::loss_sum(args.samples); }
uint64_t preference_workspace(const PreferenceArgs& args) {
  return cuda_workspace::preference(args.samples, args.rows_per_sample);
}

uint64_t square_sum_workspace(const List<SquareSumArgs>& args) {
  uint64_t bytes = 0;
  for (int i = 0; i < args.count; ++i)
    bytes += cuda_workspace::square_sum(static_cast<uint64_t>(args.first[i].count));
  return bytes;
}
uint64_t muon_workspace(const UpdateArgs& args) {
  return cuda_workspace::muon(args.count / args.columns, args.columns, is_tensor_muon(args));
}
uint64_t adafactor_workspace(const UpdateArgs& args) {
  return cuda_workspace::adafactor(args.count, args.columns);
}

}  // namespace cuda

}  // namespace stw::kernels
