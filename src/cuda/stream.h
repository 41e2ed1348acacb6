// A stream of a CUDA device: programs become graphs, since all their addresses stay as they are.
#pragma once
#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/cuda/staging.h"
#include "src/execute.h"
#include "src/stream.h"

namespace stw::cuda {

class CudaStream : public Stream {
 public:
  // `host_stream`: the host's, or null for one of our own.
  static Result<std::unique_ptr<Stream>> create(int ordinal, void* host_stream);
  ~CudaStream() override;

  void bind(Execution& execution) const override;
  std::byte* on_host(std::byte*) const override { return nullptr; }
  void upload(void* to, const void* from, uint64_t bytes) override;
  Status download(void* to, const void* from, uint64_t bytes) override;
  void zero(void* to, uint64_t bytes) override;
  void move(void* to, const void* from, uint64_t bytes) override;
  Status prepare(const Execution& execution, const Program& program) override;
  Status run(const Execution& execution, const Program& program) override;
  Status run_timed(const Execution& execution, const Program& program, float* seconds) override;
  void forget() override;
  Status wait() override;

 private:
  explicit CudaStream(int ordinal) : ordinal_(ordinal) {}
  Result<cudaGraphExec_t> graph_of(const Execution& execution, const Program& program);
  Result<cudaGraphExec_t> capture(const Execution& execution, const Program& program);
  // All instructions, the copies of a stage beside its ops, into a graph.
  Status record(const Execution& execution, const Program& program);

  const int ordinal_;
  cudaStream_t stream_ = nullptr;   // where everything runs
  bool owns_stream_ = false;
  cudaStream_t recorder_ = nullptr, copies_ = nullptr;   // that graphs are recorded on: ops, and copies beside them
  cudaEvent_t fork_ = nullptr, join_ = nullptr;
  std::vector<cudaEvent_t> timers_;
  Staging staging_;
  std::map<const Program*, cudaGraphExec_t> graphs_;
};

}  // namespace stw::cuda
