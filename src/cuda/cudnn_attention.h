// Attention by cuDNN, through the kernels' interface (kernels/contract/attention_library.h).
//
// Each kind of attention (types, heads, rows of a sample, mask) has one cuDNN engine with its settings. The
// engine is chosen for the largest part of a micro-batch with many samples
// (kernels/contract/attention_parts.h) and kept, so that the number of samples in a micro-batch changes no
// bit (contract E3). Engines that are not deterministic, or need more scratch memory than the plan gives
// them, are skipped. If no engine is left, our own kernels compute the attention.
//
// The graphs follow Dao et al., "FlashAttention" (2022), appendix B, in the deterministic form: dQ is a
// product of its own, without atomics.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/contract/attention_library.h"
#include "src/cuda/cudnn_graph.h"

namespace stw::cuda {

class CudnnAttention {
 public:
  // On the current device. Errors: unsupported without cuDNN, otherwise cuDNN's own. `path`: see cudnn::load.
  static Result<std::unique_ptr<CudnnAttention>> create(const std::string& path);
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention&) = delete;

  const kernels::AttentionLibrary* library() const { return &library_; }
  // The first error since the last call.
  stw::Status take_error();
  // As in Matmul: kinds of attention without an engine.
  std::vector<std::string> take_declined() { return std::exchange(declined_, {}); }
  // As in Matmul: engines are chosen and plans are made while no stream is recorded.
  void defer(bool is_recording) { defers_ = is_recording; }
  bool choose_waiting();

 private:
  explicit CudnnAttention(const cudnn::Functions& functions);
  bool must_wait(const kernels::AttentionArgs& args, const std::optional<kernels::AttentionPart>& part,
                 bool gradient);
  void note(cudnn::Status status, const std::string& what);  // keeps the first error
  // nullopt where no engine is left, or an error is noted.
  const std::optional<cudnn::Engine>& engine_for(const kernels::AttentionArgs& args, bool gradient);
  // Null where the engine cannot compute that part.
  const cudnn::Plan* plan_for(const kernels::AttentionArgs& args, const kernels::AttentionPart& part,
                              bool gradient);
  void attend(const kernels::AttentionArgs& args, void* scratch, cudaStream_t stream);
  void differentiate(const kernels::AttentionArgs& args, const kernels::AttentionPart& part,
                     std::byte* scratch, cudaStream_t stream);
  void execute(const kernels::AttentionArgs& args, const kernels::AttentionPart& part, bool gradient,
               std::vector<cudnn::Plan::Binding> bindings, void* workspace, cudaStream_t stream);

  const cudnn::Functions f_;
  cudnn::Handle handle_ = nullptr;
  cudnn::Status failed_ = cudnn::success;
  std::string failed_what_;
  std::vector<std::string> declined_;
  std::map<uint64_t, std::optional<cudnn::Engine>> engines_;  // by the hash of all that an engine depends on
  std::map<uint64_t, std::unique_ptr<cudnn::Plan>> plans_;    // by the hash of that and the part
  bool defers_ = false;
  // Without a part, only the engine is to be chosen.
  struct Waiting {
    kernels::AttentionArgs args;
    std::optional<kernels::AttentionPart> part;
    bool gradient;
  };
  std::vector<Waiting> waiting_;
  kernels::AttentionLibrary library_;
};

}  // namespace stw::cuda
