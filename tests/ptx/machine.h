// A machine for PTX, the text to which nvcc compiles kernels. tests/simt runs the kernels as C++; this
// machine runs them as they were compiled for a device, inline PTX and launches included. Thirty-two lanes
// execute an instruction together. If they diverge, those with the lowest program counter continue first, so
// that the lanes meet again. Blocks run one after the other; a warp runs until it waits.
//
// The machine knows the instructions that the kernels use. It ends the process for any other instruction, for
// misaligned accesses, for accesses outside the block's shared memory, for lanes and threads that wait in
// vain, and for launches that no card supports. Shared memory is full of NaN until it is written, and so are
// the targets of copies until they are waited for. It simulates no caches and no time.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tests/simt/warpgroup.h"

namespace ptx {

inline constexpr int lanes = 32;
inline constexpr uint32_t all_lanes = 0xffffffffu;
// The most shared memory of a block that every card of compute capability 8.0 and later has, and the most on
// cards of 9.0, which code with wgmma needs.
inline constexpr uint32_t largest_shared_bytes = 99 * 1024, largest_for_warpgroups = 227 * 1024;
inline constexpr uint32_t default_shared_limit =
    48 * 1024;  // Largest shared memory of a block without a request.

struct Warp;
struct Instruction;
using Run = void (*)(Warp&, const Instruction&);

// The scheduler handles branch, leave and barrier. An instruction of kind together is run when all lanes of
// its mask are at the same place.
enum class Kind : uint8_t { plain, branch, leave, barrier, together };

// The place of the numbers of 32 lanes, one after the other, in the warp's registers or in the function's
// constants. `bytes`: the size of a number; 0: there is no place.
struct Place {
  uint32_t at = 0;
  bool constant = false;
  uint8_t bytes = 0;
};

struct Instruction {
  Run run = nullptr;
  Kind kind = Kind::plain;
  Place guard;          // A predicate; without one, all lanes execute the instruction.
  bool unless = false;  // Lanes whose predicate is not set execute it.
  std::vector<Place> operand;
  int64_t offset = 0;  // Added to an address.
  // In shared and local memory, addresses count from the first byte.
  enum Space : uint8_t { anywhere, global, shared, local } space = anywhere;
  int vector = 1;           // Numbers read or written at once.
  bool whole_warp = false;  // together: needs all lanes, not those in its last operand.
  uint32_t target = 0;      // The target of a branch.
  std::string text;         // The instruction's text, for messages.
};

// The memory accesses of a kernel. `sectors`: accesses to sectors of 32 bytes of global memory, counted for
// each instruction of a warp; least_sectors: their number if the lanes' accesses were contiguous. `turns`:
// cycles of shared memory, whose banks deliver 32 different words of 4 bytes at once if no two of them are in
// the same bank; least_turns: their number without bank conflicts. A warp's accesses of 8 and 16 bytes take
// two and four turns.
struct Traffic {
  uint64_t launches = 0, instructions = 0, sectors = 0, least_sectors = 0, turns = 0, least_turns = 0;
  // Bytes of the distinct sectors that a launch loads and stores, and copies to shared memory by cp.async, as
  // it does with the operands of products: the memory traffic if caches keep the rest.
  uint64_t loaded = 0, stored = 0, copied = 0;
  std::unordered_set<uint64_t> loads, stores, copies;  // Sectors of the current launch.
};

struct Function {
  std::string name;
  struct Parameter {
    uint32_t at, bytes;
  };
  std::vector<Parameter> parameters;
  std::vector<char> parameter_memory;  // Values of the current launch.
  uint32_t register_bytes = 0;         // For a warp.
  std::vector<char> constants;
  uint32_t shared_bytes = 0;  // Static; the launch may add more.
  uint32_t local_bytes = 0;   // For a thread.
  uint32_t most_threads = 0;
  bool for_warpgroups = false;  // Its module is for compute capability 9.0 only.
  std::vector<Instruction> code;
};

// Coordinates of threads, as the first registers of every warp.
enum Special {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  specials
};
inline constexpr uint32_t special_at(int special) { return static_cast<uint32_t>(special) * lanes * 4; }

struct Copy {
  char* to;
  const char* from;
  uint32_t bytes;
  bool zeros;
};

// The last write of 16 bytes of shared memory, by a store or by a copy that has arrived: the writer, the
// block's time, and the number of its barriers before. Kept for products by warpgroups. A product sees a
// write of its own warp after fence.proxy.async. It sees a write of another warp if the writer has run this
// fence before a barrier, or its own warp has run it after a barrier.
struct Written {
  const Warp* writer = nullptr;
  uint32_t time = 0, barriers = 0;
};
// A block of threads. `written` is empty if writes are not kept.
struct Block {
  char* shared = nullptr;
  uint32_t shared_bytes = 0, time = 0, barriers = 0;
  std::vector<Written> written;
};

// Operands that a product by warpgroups reads until it has been waited for.
struct ProductInFlight {
  simt::AsyncProduct product;
  uint64_t digest;
};

struct Warp {
  uint32_t active = 0;  // Lanes that execute the current instruction.
  char* registers = nullptr;
  char* constants = nullptr;
  char* local = nullptr;     // The first lane's memory.
  uint32_t local_bytes = 0;  // Bytes for each lane.
  Block* block = nullptr;
  Traffic* traffic = nullptr;  // Null: not counted.
  enum State : uint8_t { ready, waiting, at_barrier, done };
  std::array<uint32_t, lanes> pc;
  std::array<State, lanes> state;
  std::array<std::deque<std::vector<Copy>>, lanes> copies;  // The last group is not committed.
  // The block's time at the warp's last fence; its time at the last fence that the warp ran before a barrier;
  // and the number of barriers before the last fence.
  uint32_t fence_time = 0, fence_before_barrier = 0, barriers_at_fence = 0;
  bool products_begun = false;
  int number = 0;                                     // The warp's number in its block.
  std::deque<std::vector<ProductInFlight>> products;  // Groups, as for copies.

  char* local_of(int lane) const { return local + static_cast<size_t>(lane) * local_bytes; }
  template <class T>
  T* at(const Place& p) const {
    return reinterpret_cast<T*>((p.constant ? constants : registers) + p.at);
  }
};

inline void note_written(Warp& w, const char* at, size_t bytes) {
  Block& b = *w.block;
  if (b.written.empty()) return;
  const auto first = static_cast<size_t>(at - b.shared) / 16,
             last = (static_cast<size_t>(at - b.shared) + bytes - 1) / 16;
  for (size_t line = first; line <= last; ++line) b.written[line] = {&w, ++b.time, b.barriers};
}

// Runs the body for every active lane.
template <class Body>
inline void for_lanes(const Warp& w, const Body& body) {
  if (w.active == all_lanes) {
    for (int l = 0; l < lanes; ++l) body(l);
  } else {
    for (uint32_t left = w.active; left; left &= left - 1) body(__builtin_ctz(left));
  }
}

// How an opcode is executed, and the bytes of each operand; 0: any.
struct Operation {
  Run run = nullptr;
  Kind kind = Kind::plain;
  std::vector<uint8_t> bytes;
  bool whole_warp = false;
  bool any_register = false;  // For accesses and conversions: registers may be wider than `bytes`.
};
using Words = std::vector<std::string_view>;  // An opcode split at its dots.
inline bool is_opcode(const Words& words, std::initializer_list<std::string_view> opcode) {
  return std::equal(words.begin(), words.end(), opcode.begin(), opcode.end());
}
// A null `run`: unknown opcode.
Operation arithmetic(const Words& words);
Operation conversion(const Words& words);
Operation memory_access(const Words& words);
Operation collective(const Words& words);
Operation warpgroup(const Words& words);
// mov of a register of `bytes` bytes to its two halves, and of two halves to such a register.
Operation to_parts(size_t bytes);
Operation of_parts(size_t bytes);

// Memory at multiples of 256 bytes, as a driver gives it. Else the number of sectors of a variable would
// depend on where the heap puts it.
template <class T>
struct DriverAllocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{256};
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), alignment)); }
  void deallocate(T* memory, size_t) { ::operator delete(memory, alignment); }
  bool operator==(const DriverAllocator&) const = default;
};

// The functions of a module by name. `variables` has the addresses of its variables.
struct Module {
  std::string text;
  bool for_warpgroups = false;
  // A variable in global or shared memory. Shared memory belongs to a kernel that uses it, or to the launch;
  // in the latter case `bytes` is 0.
  struct Variable {
    std::string name;
    std::vector<char, DriverAllocator<char>> memory;
    bool shared;
    uint32_t bytes, align;
  };
  std::vector<std::unique_ptr<Variable>> variables;
  // A kernel as a range of the text. It is decoded when it is launched.
  struct Entry {
    std::string name;
    size_t begin, end;
    std::unique_ptr<Function> function;
  };
  std::vector<Entry> entries;
};
std::unique_ptr<Module> read_module(std::string text);
Function& function_of(Module& module, std::string_view name);

// Traffic of all kernels that ran since counting began, by name; kernels with equal names are added up.
void count_traffic(bool begin);
std::vector<std::pair<std::string, Traffic>> traffic();
void count_global(Traffic& traffic, const uint64_t* addresses, uint32_t mask, uint32_t bytes);
void count_shared(Traffic& traffic, const uint64_t* addresses, uint32_t mask, uint32_t bytes);

struct Grid {
  uint32_t blocks[3], threads[3];
  uint32_t shared_bytes;
  uint32_t shared_limit = largest_shared_bytes;  // Of a block without warpgroups.
};
void run(Function& function, const Grid& grid);

[[noreturn]] void die(const std::string& what);

}  // namespace ptx
