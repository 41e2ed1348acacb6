#include "tests/simt/runtime.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/simt/machine.h"

namespace {
using Call = std::function<void()>;
struct Node {
  Call call;
  std::vector<size_t> after;  // Earlier nodes that it waits for.
};
struct Capture {
  std::vector<Node> nodes;
  CUstream_st* origin;
  std::thread::id thread;
  cudaStreamCaptureMode mode;
  bool is_over = false, is_spoilt = false;
};
}  // namespace

struct CUctx_st {
  int ordinal;
};
struct CUstream_st {
  CUcontext context = nullptr;
  std::deque<Call> waiting;
  std::shared_ptr<Capture> capture;  // The graph in which calls are recorded.
  std::vector<size_t> latest;        // The nodes before its next one.
};
struct CUevent_st {
  CUstream_st* stream = nullptr;
  uint64_t recorded = 0, reached = 0;
  double seconds = 0;
  bool takes_time = true;
  std::shared_ptr<Capture> capture;
  std::vector<size_t> latest;
};
struct CUgraph_st {
  std::vector<Node> nodes;
};
struct CUgraphExec_st {
  std::vector<Node> nodes;
};

namespace simt {

// Tests of the command cannot reach `faults`, and set an error of contexts in the environment.
static Faults first_faults() {
  Faults all;
  if (const char* error = std::getenv("EMULATED_CONTEXT_ERROR")) all.context_error = std::atoi(error);
  return all;
}
Faults faults = first_faults();
std::atomic<bool> is_stuck = false;
uint64_t library_products = 0, library_attentions = 0, single_launches = 0;
int64_t cudnn_descriptors = 0;

namespace {

// One call into the runtime at a time. Code that runs in it must not call back.
std::recursive_mutex one;
CUstream_st null_stream;
std::set<CUstream_st*> streams{&null_stream};
std::map<const char*, size_t> on_device, on_host;
uint64_t device_bytes = 0, host_bytes = 0;
cudaError_t broken = cudaSuccess;  // An error that stays, like a kernel's.
thread_local cudaError_t last = cudaSuccess;
thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUstream_st* of(cudaStream_t s) { return s ? s : &null_stream; }
cudaError_t set_last(cudaError_t e) {
  if (e != cudaSuccess) last = e;
  return e;
}
// The injected error of a call that needs a context.
cudaError_t injected(int error = 0) {
  return set_last(static_cast<cudaError_t>(faults.context_error ? faults.context_error : error));
}
bool capturing() {
  for (const CUstream_st* s : streams)
    if (s->capture) return true;
  return false;
}
// Whether this thread may not make calls that could disturb a capture, by the rules of
// cudaThreadExchangeStreamCaptureMode. Such a call spoils the capture.
bool forbidden() {
  bool found = false;
  for (const CUstream_st* s : streams) {
    if (!s->capture || s->capture->mode == cudaStreamCaptureModeRelaxed ||
        thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
      continue;
    const bool is_ours = s->capture->thread == std::this_thread::get_id();
    if (!is_ours &&
        (s->capture->mode != cudaStreamCaptureModeGlobal || thread_mode != CU_STREAM_CAPTURE_MODE_GLOBAL))
      continue;
    s->capture->is_spoilt = found = true;
  }
  return found;
}
CUresult exchange_mode(CUstreamCaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return CUDA_SUCCESS;
}
void run_next(CUstream_st* s) {
  const Call call = std::move(s->waiting.front());
  s->waiting.pop_front();
  call();
}
void drain(CUstream_st* s) {
  while (!s->waiting.empty()) run_next(s);
}
void reach(const CUevent_st* e, uint64_t count) {
  while (e->reached < count && e->stream && !e->stream->waiting.empty()) run_next(e->stream);
}
bool inside(const std::map<const char*, size_t>& memory, const void* p, size_t bytes) {
  auto it = memory.upper_bound(static_cast<const char*>(p));
  if (it == memory.begin()) return false;
  --it;
  return static_cast<const char*>(p) + bytes <= it->first + it->second;
}
// Contexts. If a call of the runtime needs a context and the thread has none, the thread gets the context of
// its device, as on a real device.
constexpr int most_devices = 8;
CUctx_st primary[most_devices] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
std::set<int> active;  // Devices whose primary context exists.
thread_local CUcontext current = nullptr;
thread_local int current_device = 0;
void choose(int device) {
  active.insert(device);
  current = &primary[current_device = device];
}
void need_context() {
  if (!current) choose(current_device);
}
CUresult get_context(CUcontext* context) {
  *context = current;
  return CUDA_SUCCESS;
}
CUresult set_context(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}
CUresult state_of(CUdevice device, unsigned* flags, int* is_active) {
  std::lock_guard lock(one);
  *flags = 0;
  *is_active = active.count(device) > 0;
  return CUDA_SUCCESS;
}

// During a recording, a device runs calls on other streams at once. Here that is always a mistake: a program
// is being recorded without that stream. So it is an error.
cudaError_t add(cudaStream_t s, Call call) {
  need_context();
  CUstream_st* stream = of(s);
  if (stream->capture) {
    stream->capture->nodes.push_back({std::move(call), stream->latest});
    stream->latest = {stream->capture->nodes.size() - 1};
    return cudaSuccess;
  }
  if (is_recording()) return set_last(cudaErrorStreamCaptureIsolation);
  stream->waiting.push_back(std::move(call));
  return cudaSuccess;
}
// Whether all streams of a graph have come back to the one with which it began.
bool is_joined(const Capture& capture) {
  std::vector<bool> before_end(capture.nodes.size());
  for (size_t n : capture.origin->latest) before_end[n] = true;
  for (size_t n = capture.nodes.size(); n-- > 0;)
    for (size_t earlier : capture.nodes[n].after)
      if (before_end[n]) before_end[earlier] = true;
  return std::find(before_end.begin(), before_end.end(), false) == before_end.end();
}
// Runs nodes in the order of recording; or the last recorded first, as far as they do not wait for each
// other, so that parallel work runs after the ops; or in any order that the waits allow.
void run_graph(const std::vector<Node>& nodes) {
  std::vector<std::vector<size_t>> next(nodes.size());
  std::vector<size_t> missing(nodes.size());
  std::set<size_t> ready;
  std::minstd_rand random(static_cast<uint32_t>(options.seed));
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (size_t earlier : nodes[n].after) next[earlier].push_back(n);
    missing[n] = nodes[n].after.size();
    if (missing[n] == 0) ready.insert(n);
  }
  while (!ready.empty()) {
    const auto at = static_cast<std::ptrdiff_t>(options.order == Order::forward   ? 0
                                                : options.order == Order::reverse ? ready.size() - 1
                                                                                  : random() % ready.size());
    const size_t n = *std::next(ready.begin(), at);
    ready.erase(n);
    nodes[n].call();
    for (size_t later : next[n])
      if (--missing[later] == 0) ready.insert(later);
  }
}
double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void enqueue(cudaStream_t stream, std::function<void()> call) {
  std::lock_guard lock(one);
  need_context();
  if (stream && stream->context != current) {
    set_last(cudaErrorInvalidResourceHandle);
    return;
  }
  if (faults.fail_launch > 0 && --faults.fail_launch == 0) {
    set_last(cudaErrorLaunchOutOfResources);
    return;
  }
  single_launches += !of(stream)->capture;
  static_cast<void>(add(stream, std::move(call)));
}

void finish() {
  std::lock_guard lock(one);
  for (CUstream_st* s : streams) drain(s);
}
bool is_recording() {
  std::lock_guard lock(one);
  return std::any_of(streams.begin(), streams.end(), [](const CUstream_st* s) {
    return s->capture && s->capture->thread == std::this_thread::get_id();
  });
}

uint64_t device_bytes_in_use() { return device_bytes; }
uint64_t host_bytes_in_use() { return host_bytes; }

bool has_context(int ordinal) {
  std::lock_guard lock(one);
  return active.count(ordinal) > 0;
}
void forget_contexts() {
  std::lock_guard lock(one);
  active.clear();
}
CUcontext make_context(int ordinal) {
  static std::deque<CUctx_st> made;
  return &made.emplace_back(CUctx_st{ordinal});
}
CUcontext current_context() { return current; }
void make_current(CUcontext context) { current = context; }

}  // namespace simt

using namespace simt;

static thread_local bool asked_for_shared = false;
size_t simt::take_shared_limit() {
  const bool adapted = std::exchange(asked_for_shared, false);
  return adapted ? static_cast<size_t>(faults.shared_bytes) - 1024 : most_shared;
}

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  *version = faults.driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = faults.driver == 0 ? 0 : faults.devices;
  if (faults.driver == 0) return set_last(cudaErrorInsufficientDriver);
  return *count > 0 ? cudaSuccess : set_last(cudaErrorNoDevice);
}
static constexpr int multiprocessors = 4;
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  if (device < 0 || device >= faults.devices) return set_last(cudaErrorInvalidDevice);
  std::memset(p, 0, sizeof *p);
  std::strcpy(p->name, "Emulated GPU");
  p->totalGlobalMem = faults.memory_bytes;
  p->major = faults.capability / 10;
  p->minor = faults.capability % 10;
  p->multiProcessorCount = multiprocessors;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  if (device < 0 || device >= faults.devices) return set_last(cudaErrorInvalidDevice);
  std::snprintf(id, static_cast<size_t>(length), "0000:%02x:00.0", 5 + device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device < 0 || device >= faults.devices) return set_last(cudaErrorInvalidDevice);
  if (attribute == cudaDevAttrComputeCapabilityMajor) *value = faults.capability / 10;
  else if (attribute == cudaDevAttrComputeCapabilityMinor) *value = faults.capability % 10;
  else if (attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin) *value = 227 * 1024;
  else if (attribute == cudaDevAttrMaxSharedMemoryPerMultiprocessor)
    *value = faults.shared_bytes, asked_for_shared = true;
  else if (attribute == cudaDevAttrL2CacheSize) *value = faults.cache_bytes;
  else if (attribute == cudaDevAttrMultiProcessorCount) *value = multiprocessors;
  else return set_last(cudaErrorNotSupported);
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= std::min(faults.devices, most_devices)) return set_last(cudaErrorInvalidDevice);
  std::lock_guard lock(one);
  if (const cudaError_t e = injected()) return e;
  choose(device);
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current ? current->ordinal : current_device;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** address, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  static const std::map<std::string_view, void*> functions{
      {"cuCtxGetCurrent", reinterpret_cast<void*>(get_context)},
      {"cuThreadExchangeStreamCaptureMode", reinterpret_cast<void*>(exchange_mode)},
      {"cuCtxSetCurrent", reinterpret_cast<void*>(set_context)},
      {"cuDevicePrimaryCtxGetState", reinterpret_cast<void*>(state_of)}};
  const auto function = functions.find(name);
  *address = function == functions.end() ? nullptr : function->second;
  *found = *address ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  std::lock_guard lock(one);
  if (const cudaError_t e = injected(faults.memory_info_error)) return e;
  need_context();
  *total = faults.memory_bytes;
  *available = faults.memory_bytes - device_bytes - faults.context_bytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** p, size_t bytes) {
  std::lock_guard lock(one);
  if (const cudaError_t e = injected(faults.allocation_error)) return e;
  need_context();
  if (forbidden()) return set_last(cudaErrorStreamCaptureUnsupported);
  if ((faults.fail_allocation > 0 && --faults.fail_allocation == 0) ||
      (faults.fail_allocations > 0 && faults.fail_allocations-- > 0) ||
      bytes > faults.memory_bytes - device_bytes - faults.context_bytes)
    return set_last(cudaErrorMemoryAllocation);
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*p) return set_last(cudaErrorMemoryAllocation);
  std::memset(*p, 0xff, bytes);
  on_device[static_cast<char*>(*p)] = bytes;
  device_bytes += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  if (!p) return cudaSuccess;
  std::lock_guard lock(one);
  need_context();
  if (forbidden()) return set_last(cudaErrorStreamCaptureUnsupported);
  for (CUstream_st* s : streams) drain(s);
  const auto it = on_device.find(static_cast<char*>(p));
  if (it == on_device.end()) return set_last(cudaErrorInvalidValue);
  device_bytes -= it->second;
  on_device.erase(it);
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  std::lock_guard lock(one);
  if (const cudaError_t e = injected(faults.host_allocation_error)) return e;
  need_context();
  if (forbidden()) return set_last(cudaErrorStreamCaptureUnsupported);
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*p) return set_last(cudaErrorMemoryAllocation);
  std::memset(*p, 0xff, bytes);
  on_host[static_cast<char*>(*p)] = bytes;
  host_bytes += bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) {
  if (!p) return cudaSuccess;
  std::lock_guard lock(one);
  need_context();
  const auto it = on_host.find(static_cast<char*>(p));
  if (it == on_host.end()) return set_last(cudaErrorInvalidValue);
  host_bytes -= it->second;
  on_host.erase(it);
  std::free(p);
  return cudaSuccess;
}

// From memory that is not pinned, a device copies at once. So does this runtime: the caller's buffer may be
// on the stack and end its life after the call.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  std::lock_guard lock(one);
  if (faults.fail_copy > 0 && --faults.fail_copy == 0) return set_last(cudaErrorInvalidValue);
  const bool to_device = inside(on_device, to, bytes), from_device = inside(on_device, from, bytes);
  if ((kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) && !to_device)
    return set_last(cudaErrorInvalidValue);
  if ((kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice) && !from_device)
    return set_last(cudaErrorInvalidValue);
  if (bytes == 0 && of(stream)->capture) return set_last(cudaErrorInvalidValue);  // Not a node of a graph.
  return add(stream, [=] { std::memmove(to, from, bytes); });
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  std::lock_guard lock(one);
  if (forbidden()) return set_last(cudaErrorStreamCaptureUnsupported);
  const cudaError_t status = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  if (status == cudaSuccess) finish();
  return status;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  std::lock_guard lock(one);
  if (bytes == 0 && of(stream)->capture) return set_last(cudaErrorInvalidValue);  // Not a node of a graph.
  return add(stream, [=] { std::memset(to, value, bytes); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  std::lock_guard lock(one);
  if (const cudaError_t e = injected()) return e;
  need_context();
  *s = new CUstream_st;
  (*s)->context = current;
  streams.insert(*s);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  std::lock_guard lock(one);
  drain(s);
  streams.erase(s);
  delete s;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  std::lock_guard lock(one);
  if (of(s)->capture) return set_last(cudaErrorStreamCaptureUnsupported);
  drain(of(s));
  return set_last(broken);
}
cudaError_t cudaDeviceSynchronize() {
  std::lock_guard lock(one);
  if (capturing()) return set_last(cudaErrorStreamCaptureUnsupported);
  finish();
  return set_last(broken);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned flags) {
  std::lock_guard lock(one);
  need_context();
  *e = new CUevent_st;
  (*e)->takes_time = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  std::lock_guard lock(one);
  if (e->stream) reach(e, e->recorded);
  delete e;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  std::lock_guard lock(one);
  CUstream_st* stream = of(s);
  e->capture = stream->capture;
  e->latest = stream->latest;
  if (e->capture) return cudaSuccess;
  e->stream = stream;
  const uint64_t count = ++e->recorded;
  return add(s, [e, count] {
    e->reached = count;
    e->seconds = now();
  });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags) {
  std::lock_guard lock(one);
  if (!of(s)->capture || flags != cudaEventRecordExternal) return cudaEventRecord(e, s);
  return add(s, [e] {
    e->capture.reset();
    e->seconds = now();
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  std::lock_guard lock(one);
  if (e->capture && e->capture->is_over) return set_last(cudaErrorCapturedEvent);
  if (e->capture) {
    of(s)->capture = e->capture;  // This stream takes part from now on.
    for (size_t n : e->latest) of(s)->latest.push_back(n);
    return cudaSuccess;
  }
  if (of(s)->capture) return set_last(cudaErrorStreamCaptureIsolation);
  return add(s, [e, count = e->recorded] { reach(e, count); });
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  std::lock_guard lock(one);
  if (e->capture) return set_last(cudaErrorCapturedEvent);
  reach(e, e->recorded);
  return set_last(broken);
}
// The device takes one step with each question, unless it is stuck.
cudaError_t cudaEventQuery(cudaEvent_t e) {
  std::lock_guard lock(one);
  if (e->capture) return set_last(cudaErrorCapturedEvent);
  if (e->reached == e->recorded) return set_last(broken);
  if (!is_stuck && e->stream && !e->stream->waiting.empty()) run_next(e->stream);
  return set_last(cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  for (const CUevent_st* e : {from, to}) {
    if (e->capture) return set_last(cudaErrorCapturedEvent);
    // Created without timing, or never recorded.
    if (!e->takes_time || e->seconds == 0) return set_last(cudaErrorInvalidResourceHandle);
  }
  *milliseconds = static_cast<float>((to->seconds - from->seconds) * 1e3);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
  std::lock_guard lock(one);
  if (!s || s->capture) return set_last(cudaErrorStreamCaptureUnsupported);
  s->capture = std::make_shared<Capture>(Capture{{}, s, std::this_thread::get_id(), mode});
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
  std::lock_guard lock(one);
  if (!s->capture || s->capture->origin != s) return set_last(cudaErrorStreamCaptureUnmatched);
  const std::shared_ptr<Capture> capture = s->capture;
  const bool joined = is_joined(*capture);
  capture->is_over = true;
  for (CUstream_st* other : streams) {
    if (other->capture != capture) continue;
    other->capture.reset();
    other->latest.clear();
  }
  if (capture->is_spoilt) return set_last(cudaErrorStreamCaptureInvalidated);
  if (!joined) return set_last(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::move(capture->nodes)};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = new CUgraphExec_st{graph->nodes};
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t s) {
  std::lock_guard lock(one);
  return add(s, [executable] { run_graph(executable->nodes); });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  std::lock_guard lock(one);
  for (CUstream_st* s : streams) drain(s);
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const cudaError_t e = last;
  last = cudaSuccess;
  return e;
}
cudaError_t cudaPeekAtLastError() { return last; }
const char* cudaGetErrorName(cudaError_t e) { return e == cudaSuccess ? "cudaSuccess" : "cudaErrorEmulated"; }
const char* cudaGetErrorString(cudaError_t e) {
  switch (e) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorDevicesUnavailable: return "CUDA-capable device(s) is/are busy or unavailable";
    case cudaErrorECCUncorrectable: return "uncorrectable ECC error encountered";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorLaunchOutOfResources: return "too many resources requested for launch";
    default: return "an error of the emulated device";
  }
}

}  // extern "C"
