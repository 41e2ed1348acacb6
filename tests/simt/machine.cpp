#include "tests/simt/machine.h"

#include <sys/mman.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/simt/fiber.h"

#if defined(SIMT_ADDRESS)
#include <sanitizer/asan_interface.h>
#endif
#if defined(SIMT_THREAD)
extern "C" {
void __tsan_acquire(void*);
void __tsan_release(void*);
}
#define SIMT_BEFORE(object) __tsan_release(object)
#define SIMT_AFTER(object) __tsan_acquire(object)
#else
#define SIMT_BEFORE(object) (void)0
#define SIMT_AFTER(object) (void)0
#endif

namespace simt {

Options options;
Counters counters;
Place place;

namespace {

constexpr int most_threads = 1024, lanes = 32, most_warps = most_threads / lanes;
constexpr int most_pieces = 64, most_copies = 64;
// Shared memory of a block, static and dynamic, up to which no attribute is needed; see launch in
// kernels/lanes/device.h.
constexpr size_t default_shared_limit = 48 * 1024;
constexpr size_t most_with_warpgroups = 227 * 1024;  // 9.0.

struct Warp {
  uint32_t living = 0, ready = 0, at_barrier = 0, waiting = 0;  // One bit a lane.
  uint32_t mask[lanes];
  Exchange exchange[lanes];
  void *in[lanes], *out[lanes];
};

struct Copy {
  void* to;
  const void* from;
  size_t bytes;
  int group;
};
struct Piece {
  const void* key;
  char* memory;
  size_t bytes;
};

// Arrays instead of containers: the thread sanitizer would check the containers' code.
struct Block {
  int threads = 0, living = 0, current = 0, at_barrier = 0;
  int predicates = 0, last_predicates = 0;
  Warp warp[most_warps];
  Fiber* fiber[most_threads] = {};  // Set for threads that have begun.
  Piece piece[most_pieces];
  int pieces = 0;
  char* dynamic = nullptr;
  size_t dynamic_bytes = 0, shared_limit = most_shared;
  Copy copy[most_threads][most_copies];
  int copies[most_threads] = {}, groups[most_threads] = {};
  // Whether a thread has copies that have arrived and no fence after them; whether any thread had some at the
  // last barrier.
  bool unfenced[most_threads] = {}, any_unfenced = false;
  bool uses_warpgroups = false;
};
Block b;
Fiber host, *running = nullptr;
Fiber* idle[most_threads + 1];
int idle_count = 0;
void (*body)(void*) = nullptr;
void* context = nullptr;
uint64_t draw = 0;
[[maybe_unused]] char launched, finished, barrier_object, warp_object[most_warps];

#if defined(SIMT_THREAD)
// Shared memory of a launch is never reused: the sanitizer would report the next block's writes as races.
constexpr size_t race_arena_bytes = size_t{1} << 32;
char* race_arena = nullptr;
size_t race_arena_used = 0;
#endif

SIMT_UNSEEN char* take_shared(size_t bytes) {
  const size_t total = (bytes + 127) / 128 * 128 + 128;
#if defined(SIMT_THREAD)
  if (race_arena_used + total > race_arena_bytes) die("too many blocks for a search of races");
  char* memory = race_arena + race_arena_used;
  race_arena_used += total;
  for (size_t i = 0; i < bytes; ++i) *const_cast<volatile char*>(memory + i) = static_cast<char>(0xff);
#else
  char* memory = static_cast<char*>(std::aligned_alloc(128, total));
  std::memset(memory, 0xff, bytes);
#endif
#if defined(SIMT_ADDRESS)
  __asan_poison_memory_region(memory + bytes, total - bytes);
#endif
  return memory;
}

SIMT_UNSEEN void give_shared(char* memory, [[maybe_unused]] size_t bytes) {
#if defined(SIMT_ADDRESS)
  __asan_unpoison_memory_region(memory + bytes, (bytes + 127) / 128 * 128 + 128 - bytes);
#endif
#if !defined(SIMT_THREAD)
  std::free(memory);
#else
  (void)memory;
#endif
}

SIMT_UNSEEN int nth_bit(uint32_t bits, int n) {
  while (n-- > 0) bits &= bits - 1;
  return std::countr_zero(bits);
}

// Takes a ready thread. Returns -1 if no thread is ready.
SIMT_UNSEEN int next_thread() {
  const int warps = (b.threads + lanes - 1) / lanes;
  int ready[most_warps], count = 0;
  const int now = b.current / lanes;
  if (options.order == Order::forward && b.warp[now].ready) {
    ready[count++] = now;  // A warp continues as long as it can.
  } else {
    for (int w = 0; w < warps; ++w)
      if (b.warp[w].ready) ready[count++] = w;
  }
  if (count == 0) return -1;
  int w = ready[0], l = std::countr_zero(b.warp[w].ready);
  if (options.order == Order::reverse) {
    w = ready[count - 1];
    l = 31 - std::countl_zero(b.warp[w].ready);
  } else if (options.order == Order::random) {
    draw = draw * 6364136223846793005u + 1442695040888963407u;
    w = ready[(draw >> 33) % static_cast<unsigned>(count)];
    l = nth_bit(b.warp[w].ready,
                static_cast<int>((draw >> 48) % static_cast<unsigned>(std::popcount(b.warp[w].ready))));
  }
  b.warp[w].ready &= ~(1u << l);
  return w * lanes + l;
}

SIMT_UNSEEN void stand_at(int thread) {
  b.current = thread;
  const unsigned x = place.block_extent.x, y = place.block_extent.y, t = static_cast<unsigned>(thread);
  place.thread.x = t % x;
  place.thread.y = t / x % y;
  place.thread.z = t / x / y;
}

[[noreturn]] void thread_loop();

SIMT_UNSEEN void resume(int thread) {
  stand_at(thread);
  Fiber*& fiber = b.fiber[thread];
  if (!fiber) fiber = idle_count > 0 ? idle[--idle_count] : make_fiber(thread_loop);
  Fiber* from = running;
  running = fiber;
  switch_fiber(*from, *fiber);
}

SIMT_UNSEEN void go_on() {
  const int next = next_thread();
  if (next < 0) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "deadlock: of %d threads %d wait at __syncthreads, the others for their warp", b.living,
                  b.at_barrier);
    die(text);
  }
  resume(next);
}

SIMT_UNSEEN void open_barrier() {
  for (int w = 0; w < (b.threads + lanes - 1) / lanes; ++w) {
    b.warp[w].ready |= b.warp[w].at_barrier;
    b.warp[w].at_barrier = 0;
  }
  b.at_barrier = 0;
  b.any_unfenced = false;
  for (int t = 0; t < b.threads; ++t) b.any_unfenced |= b.unfenced[t];
  b.last_predicates = b.predicates;
  b.predicates = 0;
  ++counters.barriers;
}

// If all lanes that `lane` waits for have arrived, marks them ready and returns true.
SIMT_UNSEEN bool meet(Warp& w, int lane) {
  const uint32_t mask = w.mask[lane] & w.living;
  if ((w.waiting & mask) != mask) return false;
  for (int l = 0; l < lanes; ++l)
    if ((mask >> l & 1) && (w.exchange[l] != w.exchange[lane] || (w.mask[l] & w.living) != mask))
      die("lanes of a warp disagree about a collective or its mask");
  w.exchange[lane](mask, w.in, w.out);
  w.waiting &= ~mask;
  w.ready |= mask;
  ++counters.collectives;
  return true;
}

SIMT_UNSEEN void finish_thread() {
  if (b.copies[b.current] > 0) die("a thread ends with copies that it never waited for");
  Warp& w = b.warp[b.current / lanes];
  w.living &= ~(1u << b.current % lanes);
  --b.living;
  ++counters.threads;
  if (b.at_barrier > 0 && b.at_barrier == b.living) open_barrier();
  for (int l = 0; l < lanes; ++l)
    if (w.waiting >> l & 1) meet(w, l);
}

SIMT_UNSEEN void next_after_end(int ended) {
  const int next = next_thread();
#if !defined(SIMT_THREAD)
  if (next >= 0 && !b.fiber[next]) {  // It has not begun: it takes over this fiber.
    b.fiber[next] = running;
    b.fiber[ended] = nullptr;
    stand_at(next);
    return;
  }
  idle[idle_count++] = b.fiber[ended];
  b.fiber[ended] = nullptr;
#else
  (void)ended;  // Threads keep their fibers, so that races between them stay visible.
#endif
  if (next >= 0) return resume(next);
  if (b.living > 0) return go_on();  // Reports what they wait for.
  Fiber* from = running;
  running = &host;
  switch_fiber(*from, host);
}

void thread_loop() {
  arrived_first_time();
  for (;;) {
    SIMT_AFTER(&launched);
    body(context);
    SIMT_BEFORE(&finished);
    finish_thread();
    next_after_end(b.current);
  }
}

SIMT_UNSEEN void run_block() {
  b.living = b.threads;
  b.at_barrier = b.predicates = b.pieces = 0;
  for (int w = 0; w < (b.threads + lanes - 1) / lanes; ++w) {
    const int left = b.threads - w * lanes;
    Warp& warp = b.warp[w];
    warp.living = warp.ready = left >= lanes ? ~0u : (1u << left) - 1;
    warp.at_barrier = warp.waiting = 0;
  }
  for (int t = 0; t < b.threads; ++t) b.groups[t] = 0, b.unfenced[t] = false;
  b.any_unfenced = b.uses_warpgroups = false;
  b.dynamic = b.dynamic_bytes > 0 ? take_shared(b.dynamic_bytes) : nullptr;
  b.current = 0;
  ++counters.blocks;
  running = &host;
  resume(next_thread());
  if (b.dynamic_bytes > b.shared_limit && !b.uses_warpgroups)
    die("more dynamic shared memory than every device has");
  if (b.dynamic) give_shared(b.dynamic, b.dynamic_bytes);
  for (int i = 0; i < b.pieces; ++i) give_shared(b.piece[i].memory, b.piece[i].bytes);
}

}  // namespace

void die(const char* what) {
  std::fprintf(stderr, "simt: %s (block %u,%u,%u thread %u,%u,%u)\n", what, place.block.x, place.block.y,
               place.block.z, place.thread.x, place.thread.y, place.thread.z);
  std::abort();
}

SIMT_UNSEEN void run(dim3 grid, dim3 block, size_t shared_bytes, void (*body_of_thread)(void*),
                     void* context_of_body, size_t shared_limit) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z, blocks = uint64_t{grid.x} * grid.y * grid.z;
  if (blocks == 0) die("an empty grid");
  if (threads == 0 || threads > most_threads) die("a block has 1 to 1024 threads");
  if (grid.y > 65535 || grid.z > 65535 || grid.x > 0x7fffffff) die("the grid is too large");
  if (shared_bytes > most_with_warpgroups) die("too much dynamic shared memory");
  ++counters.launches;
  adopt_thread(host);
  place.block_extent = block;
  place.grid_extent = grid;
  b.threads = static_cast<int>(threads);
  b.dynamic_bytes = shared_bytes;
  b.shared_limit = shared_limit;
  body = body_of_thread;
  context = context_of_body;
  draw = options.seed * 0x9e3779b97f4a7c15u + 1;
#if defined(SIMT_THREAD)
  // Created by the host, so that no fiber inherits the history of another one.
  for (int t = 0; t < b.threads; ++t)
    if (!b.fiber[t]) b.fiber[t] = make_fiber(thread_loop);
  race_arena = static_cast<char*>(mmap(nullptr, race_arena_bytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  race_arena_used = 0;
#endif
  SIMT_BEFORE(&launched);
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t n = options.order == Order::reverse ? blocks - 1 - i : i;
    place.block.x = static_cast<unsigned>(n % grid.x);
    place.block.y = static_cast<unsigned>(n / grid.x % grid.y);
    place.block.z = static_cast<unsigned>(n / grid.x / grid.y);
    run_block();
  }
  SIMT_AFTER(&finished);
#if defined(SIMT_THREAD)
  munmap(race_arena, race_arena_bytes);
#endif
}

SIMT_UNSEEN int barrier(int predicate) {
  SIMT_BEFORE(&barrier_object);
  b.predicates += predicate != 0;
  if (++b.at_barrier == b.living) {
    open_barrier();
  } else {
    b.warp[b.current / lanes].at_barrier |= 1u << b.current % lanes;
    go_on();
  }
  SIMT_AFTER(&barrier_object);
  return b.last_predicates;
}

SIMT_UNSEEN void collective(uint32_t mask, Exchange exchange, void* in, void* out) {
  const int lane = b.current % lanes;
  Warp& w = b.warp[b.current / lanes];
  if (!(mask >> lane & 1)) die("a lane that is not in the mask of its collective");
  w.mask[lane] = mask;
  w.exchange[lane] = exchange;
  w.in[lane] = in;
  w.out[lane] = out;
  w.waiting |= 1u << lane;
  if (meet(w, lane)) w.ready &= ~(1u << lane);  // The last lane continues itself.
  else go_on();
}

SIMT_UNSEEN static void nothing(uint32_t, void* const*, void* const*) {}

SIMT_UNSEEN void warp_barrier(uint32_t mask) {
  [[maybe_unused]] char* object = &warp_object[b.current / lanes];
  SIMT_BEFORE(object);
  collective(mask, nothing, nullptr, nullptr);
  SIMT_AFTER(object);
}

SIMT_UNSEEN void* shared(const void* key, size_t bytes) {
  for (int i = 0; i < b.pieces; ++i)
    if (b.piece[i].key == key) return b.piece[i].memory;
  if (b.pieces == most_pieces) die("too many shared variables");
  size_t all = b.dynamic_bytes + bytes;
  for (int i = 0; i < b.pieces; ++i) all += b.piece[i].bytes;
  if (all > b.shared_limit) die("too much shared memory");
  if (b.dynamic_bytes <= default_shared_limit && all > default_shared_limit)
    die("more shared memory than a launch gets that does not ask for it");
  b.piece[b.pieces] = {key, take_shared(bytes), bytes};
  return b.piece[b.pieces++].memory;
}

SIMT_UNSEEN void* dynamic_shared() {
  if (!b.dynamic) die("the launch gave no dynamic shared memory");
  return b.dynamic;
}

// The source may be gone after this call, and the data may not arrive before the wait. To find code that
// relies on either, the target is overwritten now. The sanitizer sees the memset.
SIMT_UNSEEN void copy_later(void* to, const void* from, size_t bytes) {
  int& count = b.copies[b.current];
  if (count == most_copies) die("too many copies in flight");
  std::memset(to, 0xff, bytes);
  b.copy[b.current][count++] = {to, from, bytes, b.groups[b.current]};
}

SIMT_UNSEEN void commit_copies() { ++b.groups[b.current]; }

// The sanitizer sees races with the copy, because it intercepts memcpy.
SIMT_UNSEEN void wait_for_copies(int groups_left) {
  int kept = 0;
  Copy* copies = b.copy[b.current];
  const int count = b.copies[b.current], newest_done = b.groups[b.current] - groups_left - 1;
  for (int i = 0; i < count; ++i) {
    if (copies[i].group <= newest_done)
      std::memcpy(copies[i].to, copies[i].from, copies[i].bytes), b.unfenced[b.current] = true;
    else copies[kept++] = copies[i];
  }
  b.copies[b.current] = kept;
}

SIMT_UNSEEN void fence_copies() { b.unfenced[b.current] = false; }
SIMT_UNSEEN bool copies_are_visible() { return !b.any_unfenced && !b.unfenced[b.current]; }
SIMT_UNSEEN void use_warpgroups() { b.uses_warpgroups = true; }
SIMT_UNSEEN int current_thread() { return b.current; }
SIMT_UNSEEN const void* shared_at(uint32_t byte, uint32_t bytes) {
  if (byte < first_shared_byte || byte - first_shared_byte + bytes > b.dynamic_bytes)
    die("a matrix outside of shared memory");
  return b.dynamic + (byte - first_shared_byte);
}

}  // namespace simt
