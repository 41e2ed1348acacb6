// A stream of a CUDA device. Programs become CUDA graphs, as all their addresses are fixed.
#pragma once
#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "src/cuda/cudnn_attention.h"
#include "src/cuda/matmul.h"
#include "src/cuda/staging.h"
#include "src/device/device.h"
#include "src/execute/execute.h"

namespace stw::cuda {

class CudaStream : public Stream {
 public:
  // `device` must outlive it.
  static Result<std::unique_ptr<Stream>> create(const Device& device, const DeviceOptions& options);
  ~CudaStream() override;

  Status load(const Numerics& numerics) override;
  void bind(Execution& execution) const override;
  std::byte* on_host(std::byte*) const override { return nullptr; }
  void upload(void* to, const void* from, uint64_t bytes) override;
  Status download(void* to, const void* from, uint64_t bytes) override;
  void zero(void* to, uint64_t bytes) override;
  void move(void* to, const void* from, uint64_t bytes) override;
  Status prepare(const Execution& execution, const Program& program) override;
  Status run(const Execution& execution, const Program& program) override;
  Status finish_programs() override;
  Status run_timed(const Execution& execution, const Program& program, float* seconds) override;
  void forget() override;
  Status wait() override;

 private:
  CudaStream(const Device& device, const DeviceOptions& options)
      : device_(device), ordinal_(options.ordinal), cublaslt_(options.cublaslt), cudnn_(options.cudnn) {}
  Result<cudaGraphExec_t> graph_of(const Execution& execution, const Program& program);
  Result<cudaGraphExec_t> capture(const Execution& execution, const Program& program, bool timed = false);
  struct DestroyGraph {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  };
  using RecordedGraph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;
  Result<RecordedGraph> capture_once(const Execution& execution, const Program& program, bool timed);
  // Choices of algorithms by NVIDIA's libraries: see Matmul.
  void defer_choices(bool is_recording);
  bool choose_waiting();
  void log_declined();
  // Waits for the end of a launched program, unless the call is cancelled.
  static Status wait_for_program(cudaEvent_t end);
  // Keeps the first error of a copy that is not waited for. The next run or wait returns it, on any thread.
  void keep_copy_error(Status copied);
  Status take_copy_error();
  // The error of NVIDIA's libraries, and where it occurred.
  Status library_error(const std::string& where);
  // The error of an instruction that was just executed.
  Status check(const Program& program, const Instruction& instruction);
  // Later work on `next` waits for earlier work on `first`.
  Status order(cudaStream_t first, cudaStream_t next);
  Status record_one(const Execution& execution, const Program& program, const Instruction& instruction,
                    cudaStream_t stream);
  // Records the ops of a stage. A developer's switch moves weight gradients to a branch.
  Status record_ops(const Execution& execution, const Program& program, const Stage& stage);
  Result<cudaEvent_t> branch_event(size_t n);
  // Records all instructions into a graph. The copies of a stage run at the same time as its ops.
  Status record(const Execution& execution, const Program& program);
  // Records instructions one after the other, with a timer between each two.
  Status record_timed(const Execution& execution, const Program& program);

  const Device& device_;
  const int ordinal_;
  const std::string cublaslt_, cudnn_;
  cudaStream_t stream_ = nullptr;  // all work runs here
  bool owns_stream_ = false;
  // For recording graphs: ops, and copies that run at the same time.
  cudaStream_t recorder_ = nullptr, fetches_ = nullptr, stores_ = nullptr;
  cudaStream_t branch_ = nullptr;  // for weight gradients that run at the same time
  cudaEvent_t order_ = nullptr;
  // The ends of the last two launched programs, in turn.
  cudaEvent_t ends_[2] = {};
  uint64_t launched_ = 0;
  Status copy_error_ = ok();
  std::vector<cudaEvent_t> timers_, branch_events_;
  std::unique_ptr<Staging> staging_;
  std::unique_ptr<Matmul> matmul_;             // null unless the numerics ask for it
  std::unique_ptr<CudnnAttention> attention_;  // null unless the numerics ask for it
  std::map<const Program*, cudaGraphExec_t> graphs_;
};

}  // namespace stw::cuda
