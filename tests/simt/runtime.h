// The fake runtime: libcudart's functions (cuda_runtime_api.h) over the emulated machine.
//
// Streams are lazy: a call waits in its queue until the host synchronises, and then only the calls that are
// needed run. So a test notices data that are used without waiting for them, because fresh memory is full of
// 0xff. If the forks and joins of a graph leave the order of two calls open, they run in the order of
// recording, or in another one (Order in machine.h).
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

struct CUctx_st;
struct CUstream_st;

namespace simt {

struct Holder {
  uint64_t process, bytes;
  const char* name;
};

struct Faults {
  int devices = 1;
  int driver = 13000;  // cudaDriverGetVersion; 0: no driver.
  int capability = 90;
  uint64_t memory_bytes = uint64_t{8} << 30;
  int shared_bytes = 228 << 10;  // Shared memory of a multiprocessor. A block may have 1 KB less.
  int cache_bytes = 50 << 20;    // The second-level cache.
  // Users of device 0's memory, as the driver's library reports them.
  std::vector<Holder> holders = {{17, 40 << 20, "Xorg"}, {4242, uint64_t{3} << 30, "python3"}};
  bool tells_memory = true;  // Whether the driver's library reports the memory in use.
  uint64_t context_bytes = (uint64_t{123} << 20) + 1;  // Memory of a context, in addition to allocations.
  int fail_launch = 0;                                 // The n-th launch from now on fails (1: the next).
  int fail_allocation = 0;
  int fail_allocations = 0;  // The number of allocations that fail from now on.
  int fail_copy = 0;
  // A cudaError_t that all such calls return; 0: none. Where a context is made, every call makes one.
  int context_error = 0, memory_info_error = 0, allocation_error = 0, host_allocation_error = 0;
  bool has_cublaslt = true;
  bool declines_products = false;  // cuBLASLt has no algorithm for any product.
  int fail_choice = 0;             // The n-th choice of an algorithm by cuBLASLt fails.
  int fail_product = 0;            // The n-th product by cuBLASLt fails.
  bool has_cudnn = true;
  uint64_t cudnn_version = 92000;
  bool declines_attention = false;  // cuDNN has no engine for any attention.
  int fail_attention = 0;           // The n-th attention by cuDNN fails.
  int fail_engine = 0;              // The n-th of cuDNN's plans finds no memory.
};
extern Faults faults;
// If set, launched programs do not end while the host only asks whether they have ended.
extern std::atomic<bool> is_stuck;

extern uint64_t library_products;    // Products computed by cuBLASLt.
extern uint64_t library_attentions;  // Attention computed by cuDNN.
extern int64_t cudnn_descriptors;    // Not yet destroyed.
extern uint64_t single_launches;     // Launches of kernels outside graphs.
// Runs the call when the stream reaches it, or records it in a graph. Every launch of a kernel uses it.
void enqueue(CUstream_st* stream, std::function<void()> call);
// The largest shared memory of a block of the next launch. If the host has asked for that of a multiprocessor
// since the last launch, the kernel has adapted to the device; else it must run on every device.
size_t take_shared_limit();
// Whether this thread records a graph.
bool is_recording();
// Runs everything that has begun, on all streams.
void finish();
// Device memory that was not freed.
uint64_t device_bytes_in_use();
uint64_t host_bytes_in_use();

// Contexts: whether a device has its primary one; removing all of them (while no thread works); creating one
// as the driver's API does; and the context of this thread.
bool has_context(int ordinal);
void forget_contexts();
CUctx_st* make_context(int ordinal);
CUctx_st* current_context();
void make_current(CUctx_st* context);

}  // namespace simt
