// A machine for CUDA kernels on the processor: every thread of a block is a fiber, blocks run one after the other.
//
// What it finds that a real device hides: reads of shared memory that nobody wrote (it is full of NaNs), threads that wait
// for a barrier which others never reach, lanes that disagree about a collective, copies that nobody waited for or that hit
// what is still read, misaligned vector accesses, empty grids, more shared memory than every device has (but for products by
// warpgroups, which only some have), and products that read what is not there yet or no more; under AddressSanitizer accesses outside of shared memory, under ThreadSanitizer races between the
// threads of a block and between blocks. What it cannot show: speed, and the order of real warps beyond `Order`.
//
// One kernel at a time in a process; the fake runtime sees to that.
#pragma once
#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>

namespace simt {

// Of the threads that are ready, the next to run; blocks run backwards in `reverse`.
enum class Order { forward, reverse, random };
struct Options { Order order = Order::forward; uint64_t seed = 1; };
extern Options options;

struct Counters { uint64_t launches, blocks, threads, barriers, collectives; };
extern Counters counters;

// Of the thread that runs.
struct Place { uint3 thread, block; dim3 block_extent, grid_extent; };
extern Place place;

// Runs body(context) once for every thread of the grid.
void run(dim3 grid, dim3 block, size_t shared_bytes, void (*body)(void*), void* context);

// How many threads of the block came with a predicate that is set.
int barrier(int predicate);

// All lanes in `mask` meet; the last one calls exchange(mask, in, out) for everybody, with one entry a lane.
using Exchange = void (*)(uint32_t mask, void* const* in, void* const* out);
void collective(uint32_t mask, Exchange exchange, void* in, void* out);
void warp_barrier(uint32_t mask);

// Shared memory of the current block: one piece for each key, and the dynamic one.
void* shared(const void* key, size_t bytes);
void* dynamic_shared();

// Copies to shared memory, whose targets hold NaNs until the thread has waited for them.
void copy_later(void* to, const void* from, size_t bytes);
void commit_copies();
void wait_for_copies(int groups_left);

// For products of warpgroups (warpgroup.h), which do not see what was copied until the thread that waited for it shows it to them, and
// others have met it at a barrier.
void show_copies();
bool copies_are_shown();   // to the current thread
void use_warpgroups();     // the block does, and may have the shared memory of the cards that have them
int current_thread();
// Dynamic shared memory by its address, which begins at first_shared_byte.
inline constexpr uint32_t first_shared_byte = 528;
const void* shared_at(uint32_t byte, uint32_t bytes);

[[noreturn]] void die(const char* what);   // says which thread, and ends the process

inline unsigned lane() {
  return (place.thread.x + place.block_extent.x * (place.thread.y + place.block_extent.y * place.thread.z)) & 31u;
}

}  // namespace simt
