// A machine for CUDA kernels on the processor: every thread of a block is a fiber, and blocks run one after
// the other.
//
// It finds errors that a real device hides: reads of shared memory that was not written (it is full of NaN);
// threads that wait for a barrier which others never reach; lanes that disagree about a collective; copies
// that are not waited for, or that overwrite data still being read; misaligned vector accesses; empty grids;
// more shared memory than every device has (except for products by warpgroups, which only some devices have,
// and for kernels that ask the device);
// and products that read data before they arrive or after they change. AddressSanitizer finds accesses
// outside shared memory, ThreadSanitizer finds races between threads of a block and between blocks. It cannot
// show speed, or orders of real warps other than `Order`.
//
// A process runs one kernel at a time; the fake runtime ensures that.
#pragma once
#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>

namespace simt {

// The choice of the next thread to run. In `reverse`, blocks run backwards too.
enum class Order { forward, reverse, random };
struct Options {
  Order order = Order::forward;
  uint64_t seed = 1;
};
extern Options options;

struct Counters {
  uint64_t launches, blocks, threads, barriers, collectives;
};
extern Counters counters;

// The place of the current thread.
struct Place {
  uint3 thread, block;
  dim3 block_extent, grid_extent;
};
extern Place place;

// Largest shared memory of a block on the GPUs that have least: compute capability 8.6, 8.9, 12.0.
inline constexpr size_t most_shared = 99 * 1024;
// Runs body(context) once for every thread of the grid. shared_limit: of a block without warpgroups.
void run(dim3 grid, dim3 block, size_t shared_bytes, void (*body)(void*), void* context,
         size_t shared_limit = most_shared);

// Returns the number of threads of the block whose predicate is set.
int barrier(int predicate);

// Waits for all lanes in `mask`. The last one calls exchange(mask, in, out) for all, with one entry a lane.
using Exchange = void (*)(uint32_t mask, void* const* in, void* const* out);
void collective(uint32_t mask, Exchange exchange, void* in, void* out);
void warp_barrier(uint32_t mask);

// Shared memory of the current block: one piece for each key, and the dynamic one.
void* shared(const void* key, size_t bytes);
void* dynamic_shared();

// Copies to shared memory. Their targets hold NaN until the thread has waited for them.
void copy_later(void* to, const void* from, size_t bytes);
void commit_copies();
void wait_for_copies(int groups_left);

// For products of warpgroups (warpgroup.h). They do not see copied data until the thread that waited for the
// copies has called fence_copies(), and a barrier follows.
void fence_copies();
bool copies_are_visible();  // Whether products of the current thread see them.
// Declares that the block uses warpgroups. It may then have as much shared memory as on GPUs that support
// them.
void use_warpgroups();
int current_thread();
// Dynamic shared memory by its address; the first address is first_shared_byte.
inline constexpr uint32_t first_shared_byte = 528;
const void* shared_at(uint32_t byte, uint32_t bytes);

[[noreturn]] void die(const char* what);  // Prints the thread and ends the process.

inline unsigned lane() {
  return (place.thread.x + place.block_extent.x * (place.thread.y + place.block_extent.y * place.thread.z)) &
         31u;
}

}  // namespace simt
