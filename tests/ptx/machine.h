// A machine for PTX, the text that nvcc compiles kernels to: what tests/simt runs as C++, this runs as it was compiled for a
// device, inline PTX and launches included. Thirty-two lanes go through an instruction together; where they part, those that are
// furthest behind go on first, so that they meet again. Blocks run one after the other, warps until they wait.
//
// It knows the instructions that the kernels have, and dies of any other one, of misaligned accesses, of shared memory that the
// block does not have, of lanes and threads that wait for others in vain, and of launches that no card takes. Shared memory that
// nobody wrote is full of NaNs, as are the targets of copies that nobody waited for. Nothing else is simulated: no caches, no time.
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
// That a card gives a block: every one of compute capability 8.0 and later; 9.0, which code with wgmma is for.
inline constexpr uint32_t largest_shared_bytes = 99 * 1024, largest_for_warpgroups = 227 * 1024;
inline constexpr uint32_t without_asking = 48 * 1024;   // of all shared memory of a block

struct Warp;
struct Instruction;
using Run = void (*)(Warp&, const Instruction&);

// branch, leave, barrier: the scheduler's; together: run() needs the lanes that its mask names at the same place.
enum class Kind : uint8_t { plain, branch, leave, barrier, together };

// Where the numbers of 32 lanes lie, one after the other: from the warp's registers on, or from the function's constants.
struct Place { uint32_t at = 0; bool constant = false; uint8_t bytes = 0; };   // bytes: of a number; 0: there is none

struct Instruction {
  Run run = nullptr;
  Kind kind = Kind::plain;
  Place guard;                 // a predicate; without one the instruction is for all
  bool unless = false;         // it is for lanes whose predicate is not set
  std::vector<Place> operand;
  int64_t offset = 0;          // of an address
  enum Space : uint8_t { anywhere, global, shared, local } space = anywhere;   // the last two count addresses from their first byte
  int vector = 1;              // numbers that are read or written at once
  bool whole_warp = false;     // together: needs all lanes, not those that its last operand names
  uint32_t target = 0;         // of a branch
  std::string text;            // of it, for people
};

// What a kernel asked of a device. Sectors: of 32 bytes, of global memory, for each instruction of a warp; at least: were what its
// lanes name contiguous. Turns: of the banks of shared memory, which answer 32 different words of 4 bytes at once, where no two
// of them are of the same bank; at least: were they never. A warp's accesses of 8 and 16 bytes take two and four turns.
struct Traffic {
  uint64_t launches = 0, instructions = 0, sectors = 0, least_sectors = 0, turns = 0, least_turns = 0;
  // Bytes of the different sectors that a launch reads by loads, and writes: what memory moves where caches keep the rest. Copies to shared
  // memory by cp.async, which bring the operands of products, are not among them.
  uint64_t loaded = 0, stored = 0;
  std::unordered_set<uint64_t> loads, stores;   // of the launch that runs
};

struct Function {
  std::string name;
  struct Parameter { uint32_t at, bytes; };
  std::vector<Parameter> parameters;
  std::vector<char> parameter_memory;   // of the launch that runs
  uint32_t register_bytes = 0;          // of a warp
  std::vector<char> constants;
  uint32_t shared_bytes = 0;            // without those of the launch
  uint32_t local_bytes = 0;             // of a thread
  uint32_t most_threads = 0;
  bool for_warpgroups = false;          // its module is for compute capability 9.0 alone
  std::vector<Instruction> code;
};

// Coordinates of threads, as registers at the beginning of every warp's.
enum Special { tid_x, tid_y, tid_z, ntid_x, ntid_y, ntid_z, ctaid_x, ctaid_y, ctaid_z, nctaid_x, nctaid_y, nctaid_z, laneid, specials };
inline constexpr uint32_t special_at(int special) { return static_cast<uint32_t>(special) * lanes * 4; }

struct Copy { char* to; const char* from; uint32_t bytes; bool zeros; };

// Of 16 bytes of shared memory: who wrote them last, by a store or by a copy that has arrived, and when: in the block's time, and after
// how many of its barriers. Kept for products by warpgroups, to whom it must be shown (fence.proxy.async), by the writer before a
// barrier or by whoever asks for the product behind one.
struct Written { const Warp* writer = nullptr; uint32_t time = 0, barriers = 0; };
struct Block { char* shared = nullptr; uint32_t shared_bytes = 0, time = 0, barriers = 0; std::vector<Written> written; };   // none: not kept

// What a product by warpgroups reads until it has been waited for.
struct ProductInFlight { simt::AsyncProduct product; uint64_t digest; };

struct Warp {
  uint32_t active = 0;         // lanes that the current instruction is for
  char* registers = nullptr;
  char* constants = nullptr;
  char* local = nullptr;       // of the first lane
  uint32_t local_bytes = 0;    // of each
  Block* block = nullptr;
  Traffic* traffic = nullptr;  // null: not counted
  enum State : uint8_t { ready, waiting, at_barrier, done };
  std::array<uint32_t, lanes> pc;
  std::array<State, lanes> state;
  std::array<std::deque<std::vector<Copy>>, lanes> copies;   // the last group is not committed
  uint32_t shown_at = 0, shown_before_barrier = 0, barriers_when_shown = 0;   // the last time it showed what was written
  bool products_begun = false;
  int number = 0;              // in the block
  std::deque<std::vector<ProductInFlight>> products;         // as of copies

  char* local_of(int lane) const { return local + static_cast<size_t>(lane) * local_bytes; }
  template <class T>
  T* at(const Place& p) const { return reinterpret_cast<T*>((p.constant ? constants : registers) + p.at); }
};

inline void note_written(Warp& w, const char* at, size_t bytes) {
  Block& b = *w.block;
  if (b.written.empty()) return;
  const auto first = static_cast<size_t>(at - b.shared) / 16, last = (static_cast<size_t>(at - b.shared) + bytes - 1) / 16;
  for (size_t line = first; line <= last; ++line) b.written[line] = {&w, ++b.time, b.barriers};
}

// One body for every lane that takes part.
template <class Body>
inline void for_lanes(const Warp& w, const Body& body) {
  if (w.active == all_lanes) {
    for (int l = 0; l < lanes; ++l) body(l);
  } else {
    for (uint32_t left = w.active; left; left &= left - 1) body(__builtin_ctz(left));
  }
}

// How an opcode is carried out, and the bytes of each operand; 0: any.
struct Operation {
  Run run = nullptr;
  Kind kind = Kind::plain;
  std::vector<uint8_t> bytes;
  bool whole_warp = false;
  bool any_register = false;   // registers may be wider than `bytes` say: of accesses, conversions
};
using Words = std::vector<std::string_view>;   // an opcode split at its dots
inline bool is_opcode(const Words& words, std::initializer_list<std::string_view> wanted) { return std::equal(words.begin(), words.end(), wanted.begin(), wanted.end()); }
// Without run: none of these.
Operation arithmetic(const Words& words);
Operation conversion(const Words& words);
Operation memory_access(const Words& words);
Operation collective(const Words& words);
Operation warpgroup(const Words& words);
// mov of a register to or from `parts` of half its size.
Operation to_parts(size_t bytes);
Operation of_parts(size_t bytes);

// The functions of a module by name. Addresses of its variables are those of `variables`.
struct Module {
  std::string text;
  bool for_warpgroups = false;
  // In global memory, or in shared memory: of a kernel that uses it, or what the launch gives (no bytes).
  struct Variable { std::string name; std::vector<char> memory; bool shared; uint32_t bytes, align; };
  std::vector<std::unique_ptr<Variable>> variables;
  struct Entry { std::string name; size_t begin, end; std::unique_ptr<Function> function; };   // of the text; decoded when it is launched
  std::vector<Entry> entries;
};
std::unique_ptr<Module> read_module(std::string text);
Function& function_of(Module& module, std::string_view name);

// Of all kernels that ran since counting began, by name, those of equal names added up.
void count_traffic(bool begin);
std::vector<std::pair<std::string, Traffic>> traffic();
void count_global(Traffic& traffic, const uint64_t* addresses, uint32_t mask, uint32_t bytes);
void count_shared(Traffic& traffic, const uint64_t* addresses, uint32_t mask, uint32_t bytes);

struct Grid { uint32_t blocks[3], threads[3]; uint32_t shared_bytes; };
void run(Function& function, const Grid& grid);

[[noreturn]] void die(const std::string& what);

}  // namespace ptx
