// Attention by cuDNN, as the kernels ask for it (kernels/contract/attention_library.h).
//
// One engine of cuDNN's, with its settings, for each kind of attention: types, heads, rows of a sample, mask. It is chosen for a usual
// part and kept, so that the samples of a micro-batch change no bit (contract E3). Engines that are not deterministic, or that
// need more scratch memory than the plan has for them, are left out. Where no engine is left, our own kernels do it.
//
// Graphs after Dao et al., "FlashAttention" (2022), appendix B, in the deterministic form: dQ is a product of its own, without atomics.
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
  // On the current device. Errors: unsupported where there is no cuDNN, else what that says. `path`: cudnn::load's.
  static Result<std::unique_ptr<CudnnAttention>> create(const std::string& path);
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention&) = delete;

  const kernels::AttentionLibrary* library() const { return &library_; }
  // What went wrong since the last call.
  stw::Status take_error();
  // As Matmul's: kinds of attention that have no engine.
  std::vector<std::string> take_declined() { return std::exchange(declined_, {}); }
  // As Matmul's: engines are chosen and plans are made while no stream is recorded.
  void defer(bool is_recording) { defers_ = is_recording; }
  bool choose_waiting();

 private:
  explicit CudnnAttention(const cudnn::Functions& functions);
  bool must_wait(const kernels::AttentionArgs& args, const std::optional<kernels::AttentionPart>& part, bool gradient);
  void note(cudnn::Status status, const std::string& what);   // the first error stays
  // Nothing where no engine is left, or an error is noted.
  const std::optional<cudnn::Engine>& engine_for(const kernels::AttentionArgs& args, bool gradient);
  // Null where the engine does not do that part.
  const cudnn::Plan* plan_for(const kernels::AttentionArgs& args, const kernels::AttentionPart& part, bool gradient);
  void attend(const kernels::AttentionArgs& args, void* scratch, cudaStream_t stream);
  void differentiate(const kernels::AttentionArgs& args, const kernels::AttentionPart& part, std::byte* scratch, cudaStream_t stream);
  void execute(const kernels::AttentionArgs& args, const kernels::AttentionPart& part, bool gradient, std::vector<cudnn::Plan::Binding> bindings,
               void* workspace, cudaStream_t stream);

  const cudnn::Functions f_;
  cudnn::Handle handle_ = nullptr;
  cudnn::Status failed_ = cudnn::success;
  std::string failed_what_;
  std::vector<std::string> declined_;
  std::map<uint64_t, std::optional<cudnn::Engine>> engines_;         // by the XXH3 of what they depend on
  std::map<uint64_t, std::unique_ptr<cudnn::Plan>> plans_;           // and the part
  bool defers_ = false;
  struct Waiting { kernels::AttentionArgs args; std::optional<kernels::AttentionPart> part; bool gradient; };   // no part: for its engine
  std::vector<Waiting> waiting_;
  kernels::AttentionLibrary library_;
};

}  // namespace stw::cuda
