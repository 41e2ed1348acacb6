#include "tests/simt/runtime.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "tests/simt/machine.h"

namespace {
using Call = std::function<void()>;
struct Capture { std::vector<Call> calls; CUstream_st* origin; };
}  // namespace

struct CUstream_st {
  std::deque<Call> waiting;
  std::shared_ptr<Capture> capture;   // the graph that calls are recorded in
};
struct CUevent_st {
  CUstream_st* stream = nullptr;
  uint64_t recorded = 0, reached = 0;
  double seconds = 0;
  std::shared_ptr<Capture> capture;
};
struct CUgraph_st { std::vector<Call> calls; };
struct CUgraphExec_st { std::vector<Call> calls; };

namespace simt {

Faults faults;
uint64_t library_products = 0, library_attentions = 0;
int64_t cudnn_descriptors = 0;

namespace {

// One call into the runtime at a time; what runs in it may not call back.
std::recursive_mutex one;
CUstream_st null_stream;
std::set<CUstream_st*> streams{&null_stream};
std::map<const char*, size_t> on_device, on_host;
uint64_t device_bytes = 0, host_bytes = 0;
cudaError_t last = cudaSuccess, broken = cudaSuccess;   // broken: an error that stays, as of a kernel

CUstream_st* of(cudaStream_t s) { return s ? s : &null_stream; }
cudaError_t said(cudaError_t e) {
  if (e != cudaSuccess) last = e;
  return e;
}
bool capturing() {
  for (const CUstream_st* s : streams)
    if (s->capture) return true;
  return false;
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
void add(cudaStream_t s, Call call) {
  CUstream_st* stream = of(s);
  if (stream->capture) stream->capture->calls.push_back(std::move(call));
  else stream->waiting.push_back(std::move(call));
}
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

void enqueue(cudaStream_t stream, std::function<void()> call) {
  std::lock_guard lock(one);
  if (faults.fail_launch > 0 && --faults.fail_launch == 0) {
    said(cudaErrorLaunchOutOfResources);
    return;
  }
  add(stream, std::move(call));
}

void finish() {
  std::lock_guard lock(one);
  for (CUstream_st* s : streams) drain(s);
}

uint64_t device_bytes_in_use() { return device_bytes; }
uint64_t host_bytes_in_use() { return host_bytes; }

}  // namespace simt

using namespace simt;

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) { *version = faults.driver; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { *version = CUDART_VERSION; return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = faults.driver == 0 ? 0 : faults.devices;
  if (faults.driver == 0) return said(cudaErrorInsufficientDriver);
  return *count > 0 ? cudaSuccess : said(cudaErrorNoDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  if (device < 0 || device >= faults.devices) return said(cudaErrorInvalidDevice);
  std::memset(p, 0, sizeof *p);
  std::strcpy(p->name, "Emulated GPU");
  p->totalGlobalMem = faults.memory_bytes;
  p->major = faults.capability / 10;
  p->minor = faults.capability % 10;
  p->multiProcessorCount = 4;
  return cudaSuccess;
}
static thread_local int current_device = 0;
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= faults.devices) return said(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) { *device = current_device; return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  *total = faults.memory_bytes;
  *available = faults.memory_bytes - device_bytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** p, size_t bytes) {
  std::lock_guard lock(one);
  if (capturing()) return said(cudaErrorStreamCaptureUnsupported);
  if ((faults.fail_allocation > 0 && --faults.fail_allocation == 0) || bytes > faults.memory_bytes - device_bytes)
    return said(cudaErrorMemoryAllocation);
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*p) return said(cudaErrorMemoryAllocation);
  std::memset(*p, 0xff, bytes);
  on_device[static_cast<char*>(*p)] = bytes;
  device_bytes += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  if (!p) return cudaSuccess;
  std::lock_guard lock(one);
  for (CUstream_st* s : streams) drain(s);
  const auto it = on_device.find(static_cast<char*>(p));
  if (it == on_device.end()) return said(cudaErrorInvalidValue);
  device_bytes -= it->second;
  on_device.erase(it);
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  std::lock_guard lock(one);
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*p) return said(cudaErrorMemoryAllocation);
  std::memset(*p, 0xff, bytes);
  on_host[static_cast<char*>(*p)] = bytes;
  host_bytes += bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) {
  if (!p) return cudaSuccess;
  std::lock_guard lock(one);
  const auto it = on_host.find(static_cast<char*>(p));
  if (it == on_host.end()) return said(cudaErrorInvalidValue);
  host_bytes -= it->second;
  on_host.erase(it);
  std::free(p);
  return cudaSuccess;
}

// From memory that is not pinned a device copies at once; here too, so that a buffer on the stack may end its life.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  std::lock_guard lock(one);
  const bool to_device = inside(on_device, to, bytes), from_device = inside(on_device, from, bytes);
  if ((kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) && !to_device) return said(cudaErrorInvalidValue);
  if ((kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice) && !from_device) return said(cudaErrorInvalidValue);
  add(stream, [=] { std::memmove(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  std::lock_guard lock(one);
  const cudaError_t status = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  if (status == cudaSuccess) finish();
  return status;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  std::lock_guard lock(one);
  add(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  std::lock_guard lock(one);
  *s = new CUstream_st;
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
  if (of(s)->capture) return said(cudaErrorStreamCaptureUnsupported);
  drain(of(s));
  return said(broken);
}
cudaError_t cudaDeviceSynchronize() {
  std::lock_guard lock(one);
  if (capturing()) return said(cudaErrorStreamCaptureUnsupported);
  finish();
  return said(broken);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) { *e = new CUevent_st; return cudaSuccess; }
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
  if (e->capture) return cudaSuccess;   // calls stand in the graph in their order
  e->stream = stream;
  const uint64_t count = ++e->recorded;
  add(s, [e, count] { e->reached = count; e->seconds = now(); });
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  std::lock_guard lock(one);
  if (e->capture) {
    of(s)->capture = e->capture;   // this stream takes part from now on
    return cudaSuccess;
  }
  if (of(s)->capture) return said(cudaErrorStreamCaptureIsolation);
  add(s, [e, count = e->recorded] { reach(e, count); });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  std::lock_guard lock(one);
  reach(e, e->recorded);
  return said(broken);
}
cudaError_t cudaEventQuery(cudaEvent_t e) { return e->reached == e->recorded ? cudaSuccess : cudaErrorNotReady; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  *milliseconds = static_cast<float>((to->seconds - from->seconds) * 1e3);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) {
  std::lock_guard lock(one);
  if (!s || s->capture) return said(cudaErrorStreamCaptureUnsupported);
  s->capture = std::make_shared<Capture>(Capture{{}, s});
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
  std::lock_guard lock(one);
  if (!s->capture || s->capture->origin != s) return said(cudaErrorStreamCaptureUnmatched);
  const std::shared_ptr<Capture> capture = s->capture;
  for (CUstream_st* other : streams)
    if (other->capture == capture) other->capture.reset();
  *graph = new CUgraph_st{std::move(capture->calls)};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = new CUgraphExec_st{graph->calls};
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t s) {
  std::lock_guard lock(one);
  add(s, [executable] {
    for (const Call& call : executable->calls) call();
  });
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { delete graph; return cudaSuccess; }
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
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorLaunchOutOfResources: return "too many resources requested for launch";
    default: return "an error of the emulated device";
  }
}

}  // extern "C"
