// The fake runtime: libcudart's functions (cuda_runtime_api.h) over the emulated machine.
//
// Streams are lazy: a call waits in its queue until somebody synchronises, and then only what is needed runs. So data that
// is used without waiting for it shows, since fresh memory is full of 0xff. What forks and joins of a recording leave open, a
// graph does in the order of recording, or in another one (Order in machine.h).
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

struct CUctx_st;
struct CUstream_st;

namespace simt {

struct Holder { uint64_t process, bytes; const char* name; };

struct Faults {
  int devices = 1;
  int driver = 13000;             // cudaDriverGetVersion; 0: there is none
  int capability = 90;
  uint64_t memory_bytes = uint64_t{8} << 30;
  std::vector<Holder> holders = {{17, 40 << 20, "Xorg"}, {4242, uint64_t{3} << 30, "python3"}};   // of device 0's memory, as the driver's library says
  bool tells_memory = true;       // that library, what is in use
  uint64_t context_bytes = (uint64_t{123} << 20) + 1;   // of a context, outside of what is allocated
  int fail_launch = 0;            // the n-th launch from now on fails (1: the next)
  int fail_allocation = 0;
  int fail_allocations = 0;       // so many from now on
  int fail_copy = 0;
  bool has_cublaslt = true;
  bool declines_products = false; // cuBLASLt has no algorithm for any
  int fail_choice = 0;            // of such an algorithm
  int fail_product = 0;           // of cuBLASLt's
  bool has_cudnn = true;
  uint64_t cudnn_version = 92000;
  bool declines_attention = false; // cuDNN has no engine for any
  int fail_attention = 0;         // of cuDNN's
  int fail_engine = 0;            // the n-th of its plans finds no memory
};
extern Faults faults;

extern uint64_t library_products;   // that cuBLASLt was asked for
extern uint64_t library_attentions; // cuDNN
extern int64_t cudnn_descriptors;   // that were not given back
extern uint64_t single_launches;    // of kernels, outside of graphs
// Runs the call when the stream comes to it, or records it in a graph: what every launch of a kernel is made of.
void enqueue(CUstream_st* stream, std::function<void()> call);
// Whether this thread records a graph.
bool is_recording();
// Runs everything that was begun, on all streams.
void finish();
// Device memory that was not given back.
uint64_t device_bytes_in_use();
uint64_t host_bytes_in_use();

// Contexts: whether a device has its primary one, all of them taken away (while nobody works), one as the driver's API makes
// it, and that of this thread.
bool has_context(int ordinal);
void forget_contexts();
CUctx_st* make_context(int ordinal);
CUctx_st* current_context();
void make_current(CUctx_st* context);

}  // namespace simt
