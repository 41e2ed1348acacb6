#include "src/cuda/stream.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda/developer.h"
#include "planner/base/check_in.h"
#include "planner/graph/op_table.h"
#include "src/cuda/branch.h"
#include "src/cuda/current.h"
#include "src/cuda/error.h"
#include "src/cuda/range.h"
#include "src/cuda/wait.h"

namespace stw::cuda {

namespace {

std::string name_of(const Program& program, const Instruction& i) {
  return std::string("op ") + op_row(i.kind).name + " of program " + program.name;
}

// "attention_gradient, block 3".
std::string range_name(const Graph& graph, const Instruction& i) {
  const std::string place = graph.segment_name(graph.op(i.op).segment);
  return op_row(i.kind).name + (place.empty() ? place : ", " + place);
}

Status status_of(const char* what, cudaError_t status) {
  STW_CUDA_TRY(what, status);
  return ok();
}

}  // namespace

Result<std::unique_ptr<Stream>> CudaStream::create(const Device& device, const DeviceOptions& options) {
  const Current current(options.ordinal);
  STW_CUDA_TRY("the context of device " + std::to_string(options.ordinal),
               static_cast<cudaError_t>(current.failure()));
  std::unique_ptr<CudaStream> s(new CudaStream(device, options));
  s->stream_ = static_cast<cudaStream_t>(options.stream);
  if (!options.stream) {
    STW_CUDA_TRY("a stream", cudaStreamCreateWithFlags(&s->stream_, cudaStreamNonBlocking));
    s->owns_stream_ = true;
  }
  for (cudaStream_t* r : {&s->recorder_, &s->fetches_, &s->stores_, &s->branch_})
    STW_CUDA_TRY("a stream", cudaStreamCreateWithFlags(r, cudaStreamNonBlocking));
  for (cudaEvent_t* e : {&s->order_, &s->ends_[0], &s->ends_[1]})
    STW_CUDA_TRY("an event", cudaEventCreateWithFlags(e, cudaEventDisableTiming));
  s->staging_ = std::make_unique<Staging>();
  STW_TRY(s->staging_->create());
  return std::unique_ptr<Stream>(std::move(s));
}

CudaStream::~CudaStream() {
  const Current current(ordinal_);
  if (stream_) cudaStreamSynchronize(stream_);
  forget();
  matmul_.reset();  // while their device is the current one
  attention_.reset();
  staging_.reset();
  for (cudaEvent_t e : {order_, ends_[0], ends_[1]})
    if (e) cudaEventDestroy(e);
  for (cudaEvent_t e : timers_) cudaEventDestroy(e);
  for (cudaEvent_t e : branch_events_) cudaEventDestroy(e);
  for (cudaStream_t s : {recorder_, fetches_, stores_, branch_})
    if (s) cudaStreamDestroy(s);
  if (owns_stream_) cudaStreamDestroy(stream_);
}

static Status has_wgmma(int ordinal) {
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal);
  if (major != 9 || minor != 0)
    return Error{Code::unsupported, "kernels: products by wgmma need compute capability 9.0, device " +
                                        std::to_string(ordinal) + " has " + std::to_string(major) + "." +
                                        std::to_string(minor)};
  if (!kernels::has_warpgroup_kernels())
    return Error{Code::unsupported,
                 "kernels: this build has no products by wgmma (gpu_architectures has no 90)"};
  return ok();
}

Status CudaStream::load(const Numerics& numerics) {
  const Current current(ordinal_);
  if (uses_wgmma(numerics.kernels)) STW_TRY(has_wgmma(ordinal_));
  if (uses_cublaslt(numerics.kernels) && !matmul_) {
    STW_ASSIGN(matmul, Matmul::create(cublaslt_));
    matmul_ = std::move(matmul);
  }
  if (numerics.attention == Attention::cudnn && !attention_) {
    STW_ASSIGN(attention, CudnnAttention::create(cudnn_));
    attention_ = std::move(attention);
  }
  return ok();
}

void CudaStream::bind(Execution& execution) const {
  execution.table = kernels::cuda_table();
  execution.parallel = {};
  execution.stream = stream_;
  execution.products = matmul_ ? matmul_->library() : nullptr;
  execution.attention = attention_ ? attention_->library() : nullptr;
}

void CudaStream::keep_copy_error(Status copied) {
  if (copy_error_ && !copied) copy_error_ = std::move(copied);
}
Status CudaStream::take_copy_error() { return std::exchange(copy_error_, ok()); }

void CudaStream::upload(void* to, const void* from, uint64_t bytes) {
  const Current current(ordinal_);
  keep_copy_error(staging_->upload(to, from, bytes, stream_));
}

Status CudaStream::download(void* to, const void* from, uint64_t bytes) {
  const Current current(ordinal_);
  return staging_->download(to, from, bytes, stream_);
}

void CudaStream::zero(void* to, uint64_t bytes) {
  const Current current(ordinal_);
  keep_copy_error(status_of("zeros", cudaMemsetAsync(to, 0, bytes, stream_)));
}

// Source and destination of a device copy must not overlap. If they do, the copy is cut into pieces as long
// as the distance between them. If that distance is small, the copy goes through the host.
void CudaStream::move(void* to, const void* from, uint64_t bytes) {
  const Current current(ordinal_);
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  if (target == source || bytes == 0) return;
  const bool down = target < source;
  const auto apart = static_cast<uint64_t>(down ? source - target : target - source);
  if (apart >= bytes)
    return keep_copy_error(status_of("a copy", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_)));
  constexpr uint64_t worth_a_copy = 64 << 10;
  const uint64_t piece = apart >= worth_a_copy ? apart : Staging::slot_bytes;
  std::vector<std::byte> held(apart >= worth_a_copy ? 0 : static_cast<size_t>(std::min(piece, bytes)));
  for (uint64_t done = 0; done < bytes; done += piece) {
    const uint64_t n = std::min(piece, bytes - done), at = down ? done : bytes - done - n;
    if (held.empty()) {
      keep_copy_error(
          status_of("a copy", cudaMemcpyAsync(target + at, source + at, n, cudaMemcpyDefault, stream_)));
    } else {
      const Status taken = staging_->download(held.data(), source + at, n, stream_);
      keep_copy_error(taken ? staging_->upload(target + at, held.data(), n, stream_) : taken);
    }
  }
}

Status CudaStream::check(const Program& program, const Instruction& instruction) {
  Status failed = library_error(name_of(program, instruction));  // taken even if another error is returned
  if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess)
    return error_of(name_of(program, instruction), status);
  return failed;
}

Status CudaStream::library_error(const std::string& where) {
  Status failed = matmul_ ? matmul_->take_error() : ok();
  if (attention_ && failed) failed = attention_->take_error();
  if (!failed) failed.error().message = where + ": " + failed.error().message;
  return failed;
}

Status CudaStream::order(cudaStream_t first, cudaStream_t next) {
  STW_CUDA_TRY("a fork", cudaEventRecord(order_, first));
  STW_CUDA_TRY("a fork", cudaStreamWaitEvent(next, order_, 0));
  return ok();
}

Status CudaStream::record_one(const Execution& execution, const Program& program,
                              const Instruction& instruction, cudaStream_t stream) {
  check_in();  // cancels between two recorded ops; launched work goes on
  const Range range(range_name(*execution.graph, instruction).c_str());
  execute_one(execution, program, instruction, stream);
  return check(program, instruction);
}

Result<cudaEvent_t> CudaStream::branch_event(size_t n) {
  while (branch_events_.size() <= n) {
    cudaEvent_t event = nullptr;
    STW_CUDA_TRY("an event", cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    branch_events_.push_back(event);
  }
  return branch_events_[n];
}

Status CudaStream::record_ops(const Execution& execution, const Program& program, const Stage& stage) {
  const std::vector<Instruction>& list = program.instructions;
  if (!kernels::cuda::developer_switches().weight_gradient_branch) {
    for (size_t k = stage.ops; k < stage.end; ++k)
      STW_TRY(record_one(execution, program, list[k], recorder_));
    return ok();
  }
  const Branch branch =
      weight_gradient_branch(*execution.graph, *execution.layout, program, stage.ops, stage.end);
  const auto wait_for = [&](size_t k) -> Status {
    STW_CUDA_TRY("a join", cudaStreamWaitEvent(recorder_, branch_events_[k], 0));
    return ok();
  };
  size_t last = stage.end;  // on the branch; stage.end: none
  for (size_t k = stage.ops; k < stage.end; ++k) {
    if (branch.has[k]) {
      STW_TRY(order(recorder_, branch_));
      STW_TRY(record_one(execution, program, list[k], branch_));
      STW_ASSIGN(done, branch_event(k));
      STW_CUDA_TRY("a join", cudaEventRecord(done, branch_));
      last = k;
    } else {
      if (branch.waits_for[k] >= 0) STW_TRY(wait_for(static_cast<size_t>(branch.waits_for[k])));
      STW_TRY(record_one(execution, program, list[k], recorder_));
    }
  }
  return last < stage.end ? wait_for(last) : ok();
}

Status CudaStream::record(const Execution& execution, const Program& program) {
  const std::vector<Instruction>& list = program.instructions;
  for (const Stage& stage : stages_of(program)) {
    std::vector<cudaStream_t> copies;
    // Copies in one direction run one after the other.
    for (const OpKind kind : {OpKind::fetch, OpKind::store}) {
      cudaStream_t const stream = kind == OpKind::fetch ? fetches_ : stores_;
      if (std::none_of(&list[stage.first], &list[stage.first] + (stage.ops - stage.first),
                       [&](const Instruction& i) { return i.kind == kind; }))
        continue;
      STW_TRY(order(recorder_, stream));
      copies.push_back(stream);
      for (size_t k = stage.first; k < stage.ops; ++k)
        if (list[k].kind == kind) STW_TRY(record_one(execution, program, list[k], stream));
    }
    STW_TRY(record_ops(execution, program, stage));
    for (cudaStream_t side : copies) STW_TRY(order(side, recorder_));
  }
  return ok();
}

Status CudaStream::record_timed(const Execution& execution, const Program& program) {
  const size_t count = program.instructions.size();
  const auto record_timer = [&](size_t n) -> Status {
    // With this flag the event becomes a node of the graph.
    STW_CUDA_TRY("a timer", cudaEventRecordWithFlags(timers_[n], recorder_, cudaEventRecordExternal));
    return ok();
  };
  for (size_t n = 0; n < count; ++n) {
    STW_TRY(record_timer(n));
    STW_TRY(record_one(execution, program, program.instructions[n], recorder_));
  }
  return record_timer(count);
}

void CudaStream::defer_choices(bool is_recording) {
  if (matmul_) matmul_->defer(is_recording);
  if (attention_) attention_->defer(is_recording);
}

bool CudaStream::choose_waiting() {
  const bool products = matmul_ && matmul_->choose_waiting(),
             attention = attention_ && attention_->choose_waiting();
  return products || attention;
}

void CudaStream::log_declined() {
  constexpr int32_t warning = 2;
  const auto log_all = [&](const std::vector<std::string>& kinds) {
    for (const std::string& kind : kinds) device_.log(warning, "cuda", kind.c_str());
  };
  if (matmul_) log_all(matmul_->take_declined());
  if (attention_) log_all(attention_->take_declined());
}

Result<CudaStream::RecordedGraph> CudaStream::capture_once(const Execution& execution, const Program& program,
                                                           bool timed) {
  // Clears an earlier error of the host, which may share our copy of the runtime. Launches report their
  // errors by the same cudaGetLastError().
  static_cast<void>(cudaGetLastError());
  // Allows kernels to be loaded during the recording.
  STW_CUDA_TRY("the recording of a program", cudaStreamBeginCapture(recorder_, cudaStreamCaptureModeRelaxed));
  RecordedGraph graph(nullptr);
  cudaError_t ended = cudaSuccess;
  Status recorded = ok();
  {
    struct Ending {  // ends the capture also when host memory runs out
      CudaStream& stream;
      RecordedGraph& graph;
      cudaError_t& ended;
      ~Ending() {
        stream.defer_choices(false);
        cudaGraph_t ended_graph = nullptr;
        ended = cudaStreamEndCapture(stream.recorder_, &ended_graph);
        // This error is returned below, or it follows from the one that is returned.
        if (ended != cudaSuccess) static_cast<void>(cudaGetLastError());
        graph = RecordedGraph(ended_graph);
      }
    } ending{*this, graph, ended};
    defer_choices(true);
    recorded = timed ? record_timed(execution, program) : record(execution, program);
  }
  STW_TRY(recorded);
  STW_CUDA_TRY("the recording of program " + program.name, ended);
  return graph;
}

Result<cudaGraphExec_t> CudaStream::capture(const Execution& execution, const Program& program, bool timed) {
  const Range range(("record " + program.name).c_str());
  Result<RecordedGraph> graph = capture_once(execution, program, timed);
  while (choose_waiting()) {  // the recording lacks products that had no algorithm yet
    const Status chosen = library_error("program " + program.name);
    if (!graph) break;
    STW_TRY(chosen);
    graph = capture_once(execution, program, timed);
  }
  log_declined();
  if (!graph) return graph.error();
  cudaGraphExec_t executable = nullptr;
  STW_CUDA_TRY("the graph of program " + program.name, cudaGraphInstantiate(&executable, graph->get(), 0));
  return executable;
}

Result<cudaGraphExec_t> CudaStream::graph_of(const Execution& execution, const Program& program) {
  const auto found = graphs_.find(&program);
  if (found != graphs_.end()) return found->second;
  STW_ASSIGN(executable, capture(execution, program));
  graphs_.emplace(&program, executable);
  return executable;
}

Status CudaStream::prepare(const Execution& execution, const Program& program) {
  const Current current(ordinal_);
  STW_ASSIGN(graph, graph_of(execution, program));
  STW_CUDA_TRY("the graph of program " + program.name, cudaGraphUpload(graph, stream_));
  return ok();
}

Status CudaStream::run(const Execution& execution, const Program& program) {
  const Current current(ordinal_);
  STW_TRY(take_copy_error());
  STW_ASSIGN(graph, graph_of(execution, program));
  const Range range(program.name.c_str());
  STW_CUDA_TRY("program " + program.name, cudaGraphLaunch(graph, stream_));
  STW_CUDA_TRY("program " + program.name, cudaEventRecord(ends_[launched_++ % 2], stream_));
  // One program waits in the queue while the device runs another, so that the device is never idle.
  return launched_ > 1 ? wait_for_program(ends_[launched_ % 2]) : ok();
}

Status CudaStream::finish_programs() {
  const Current current(ordinal_);
  return launched_ > 0 ? wait_for_program(ends_[(launched_ - 1) % 2]) : ok();
}

Status CudaStream::wait_for_program(cudaEvent_t end) {
  STW_CUDA_TRY("the work on the device", wait_for(end));
  return ok();
}

Status CudaStream::run_timed(const Execution& execution, const Program& program, float* seconds) {
  const Current current(ordinal_);
  const size_t count = program.instructions.size();
  while (timers_.size() <= count) {
    cudaEvent_t timer = nullptr;
    STW_CUDA_TRY("a timer", cudaEventCreateWithFlags(&timer, cudaEventDefault));
    timers_.push_back(timer);
  }
  // A graph lets the device go from op to op as in a run. If ops were launched one by one, small ones would
  // show the host's time.
  STW_ASSIGN(graph, capture(execution, program, true));
  cudaError_t status = cudaGraphLaunch(graph, stream_);
  if (status == cudaSuccess) status = cudaStreamSynchronize(stream_);
  cudaGraphExecDestroy(graph);
  STW_CUDA_TRY("program " + program.name, status);
  for (size_t n = 0; n < count; ++n) {
    float milliseconds = 0;
    STW_CUDA_TRY("a timer", cudaEventElapsedTime(&milliseconds, timers_[n], timers_[n + 1]));
    seconds[n] = milliseconds * 1e-3f;
  }
  return ok();
}

void CudaStream::forget() {
  const Current current(ordinal_);
  for (const auto& [program, executable] : graphs_) cudaGraphExecDestroy(executable);
  graphs_.clear();
}

Status CudaStream::wait() {
  const Current current(ordinal_);
  STW_CUDA_TRY("the work on the device", cudaStreamSynchronize(stream_));
  return take_copy_error();
}

}  // namespace stw::cuda
