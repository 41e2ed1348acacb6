// The scheduler of lanes, warps and blocks.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/ptx/machine.h"

namespace ptx {
namespace {

const Function* running = nullptr;
bool counting = false;
std::vector<std::pair<std::string, Traffic>> counted;

struct FreeAligned {
  void operator()(char* p) const { std::free(p); }
};
using Memory = std::unique_ptr<char[], FreeAligned>;
Memory aligned(size_t bytes) {
  return Memory(static_cast<char*>(std::aligned_alloc(256, (bytes + 511) / 256 * 256)));
}

uint32_t lanes_in(const Warp& w, Warp::State state) {
  uint32_t mask = 0;
  for (int l = 0; l < lanes; ++l) mask |= static_cast<uint32_t>(w.state[l] == state) << l;
  return mask;
}
void put(Warp& w, uint32_t mask, uint32_t pc, Warp::State state = Warp::ready) {
  for (; mask; mask &= mask - 1) {
    const auto l = static_cast<size_t>(__builtin_ctz(mask));
    w.pc[l] = pc;
    w.state[l] = state;
  }
}

// The lanes of `mask` whose guard is set.
uint32_t guarded(const Warp& w, const Instruction& i, uint32_t mask) {
  if (i.guard.bytes == 0) return mask;
  const uint8_t* const p = w.at<uint8_t>(i.guard);
  uint32_t set = 0;
  for (int l = 0; l < lanes; l += 8) {  // The lowest bit of each byte, in byte order.
    uint64_t eight;
    std::memcpy(&eight, p + l, 8);
    set |= static_cast<uint32_t>((eight & 0x0101010101010101u) * 0x0102040810204080u >> 56) << l;
  }
  return mask & (i.unless ? ~set : set);
}

// The lanes with the lowest program counter, including those that wait at the same place. `limit`: the
// program counter of the next ones.
uint32_t lanes_with_lowest_pc(const Warp& w, uint32_t& pc, uint32_t& limit) {
  pc = limit = UINT32_MAX;
  for (size_t l = 0; l < lanes; ++l)
    if (w.state[l] == Warp::ready) pc = std::min(pc, w.pc[l]);
  uint32_t mask = 0;
  for (size_t l = 0; l < lanes && pc != UINT32_MAX; ++l) {
    const bool goes_on = w.state[l] == Warp::ready || w.state[l] == Warp::waiting;
    if (goes_on && w.pc[l] == pc) mask |= 1u << l;
    else if (goes_on && w.pc[l] > pc) limit = std::min(limit, w.pc[l]);
  }
  return mask;
}

bool have_met(const Warp& w, const Instruction& i, uint32_t mask) {
  if (i.whole_warp) return mask == all_lanes;
  const uint32_t* const needed = w.at<uint32_t>(i.operand.back());
  for (uint32_t left = mask; left; left &= left - 1)
    if ((needed[__builtin_ctz(left)] & mask) != needed[__builtin_ctz(left)]) return false;
  return true;
}

// Runs a warp until every lane has left or waits at a barrier.
void advance(Warp& w, const Function& f) {
  for (uint32_t pc = 0, limit = 0;;) {
    const uint32_t mask = lanes_with_lowest_pc(w, pc, limit);
    if (mask == 0) {
      if (lanes_in(w, Warp::waiting) != 0)
        die("lanes wait for others that never come: " +
            f.code[w.pc[__builtin_ctz(lanes_in(w, Warp::waiting))]].text);
      return;
    }
    put(w, mask, pc);
    for (bool together = true; together;) {
      if (pc == limit) {  // Others wait here.
        put(w, mask, pc);
        break;
      }
      const Instruction& i = f.code[pc];
      w.active = guarded(w, i, mask);
      if (w.traffic) w.traffic->instructions += 1;
      switch (i.kind) {
        case Kind::plain:
          if (w.active) i.run(w, i);
          ++pc;
          break;
        case Kind::branch:
          if (w.active == mask) {
            pc = i.target;
            if (pc > limit) put(w, mask, pc), together = false;
          } else if (w.active == 0) {
            ++pc;
          } else {
            put(w, w.active, i.target);
            put(w, mask & ~w.active, pc + 1);
            together = false;
          }
          break;
        case Kind::leave:
          put(w, w.active, pc, Warp::done);
          put(w, mask & ~w.active, pc + 1);
          together = false;
          break;
        case Kind::barrier:
          if (w.active != mask) die("a barrier for some lanes: " + i.text);
          put(w, mask, pc, Warp::at_barrier);
          together = false;
          break;
        case Kind::together:
          if (w.active != mask) die("a collective for some lanes: " + i.text);
          if (have_met(w, i, mask)) {
            i.run(w, i);
            ++pc;
          } else {
            put(w, mask, pc, Warp::waiting);
            together = false;
          }
          break;
      }
    }
  }
}

// Called when all remaining threads are at a barrier. Lets them continue.
void pass_barrier(std::vector<Warp>& warps, const Function& f) {
  warps.front().block->barriers += 1;
  for (Warp& w : warps) w.fence_before_barrier = w.fence_time;
  uint32_t set = 0;
  const Instruction* first = nullptr;
  for (const Warp& w : warps)
    for (size_t l = 0; l < lanes; ++l) {
      if (w.state[l] != Warp::at_barrier) continue;
      const Instruction& i = f.code[w.pc[l]];
      if (!first) first = &i;
      if ((i.operand.size() == 3) != (first->operand.size() == 3))
        die("threads wait at different kinds of barriers: " + i.text);
      if (i.operand.size() == 3) set += w.at<uint8_t>(i.operand[2])[l];
    }
  for (Warp& w : warps)
    for (size_t l = 0; l < lanes; ++l) {
      if (w.state[l] != Warp::at_barrier) continue;
      const Instruction& i = f.code[w.pc[l]];
      if (i.operand.size() == 3 && i.operand[0].bytes == 1) w.at<uint8_t>(i.operand[0])[l] = set > 0;
      else if (i.operand.size() == 3) w.at<uint32_t>(i.operand[0])[l] = set;
      w.state[l] = Warp::ready;
      w.pc[l] += 1;
    }
}

}  // namespace

void die(const std::string& what) {
  std::fprintf(stderr, "%s%s%s\n", running ? running->name.c_str() : "", running ? ": " : "", what.c_str());
  std::abort();
}

void run(Function& f, const Grid& grid) {
  running = &f;
  const uint64_t threads = uint64_t{grid.threads[0]} * grid.threads[1] * grid.threads[2];
  const uint64_t blocks = uint64_t{grid.blocks[0]} * grid.blocks[1] * grid.blocks[2];
  if (threads == 0 || blocks == 0 || threads > 1024)
    die("a launch of " + std::to_string(blocks) + " blocks of " + std::to_string(threads) + " threads");
  if (f.most_threads && threads > f.most_threads)
    die(std::to_string(threads) + " threads a block, compiled for " + std::to_string(f.most_threads));
  Traffic traffic;
  Block block;
  block.shared_bytes = f.shared_bytes + grid.shared_bytes;
  if (block.shared_bytes > (f.for_warpgroups ? largest_for_warpgroups : grid.shared_limit))
    die(std::to_string(block.shared_bytes) + " bytes of shared memory");
  const Memory shared = aligned(block.shared_bytes);
  block.shared = shared.get();
  const Memory constants = aligned(f.constants.size());
  std::copy(f.constants.begin(), f.constants.end(), constants.get());
  const size_t count = (threads + lanes - 1) / lanes;
  const Memory registers = aligned(count * f.register_bytes);
  const Memory local = aligned(count * lanes * f.local_bytes);
  std::vector<Warp> warps(count);
  for (uint64_t b = 0; b < blocks; ++b) {
    const uint64_t place[3] = {b % grid.blocks[0], b / grid.blocks[0] % grid.blocks[1],
                               b / grid.blocks[0] / grid.blocks[1]};
    std::memset(block.shared, 0xff, block.shared_bytes);
    std::memset(local.get(), 0xff, count * lanes * f.local_bytes);
    for (size_t n = 0; n < count; ++n) {
      Warp& w = warps[n];
      w.registers = registers.get() + n * f.register_bytes;
      w.constants = constants.get();
      w.local = local.get() + n * lanes * f.local_bytes;
      w.local_bytes = f.local_bytes;
      w.block = &block;
      w.traffic = counting ? &traffic : nullptr;
      const auto special = [&](int s) { return reinterpret_cast<uint32_t*>(w.registers + special_at(s)); };
      for (uint32_t l = 0; l < lanes; ++l) {
        const uint64_t t = n * lanes + l;
        special(tid_x)[l] = static_cast<uint32_t>(t % grid.threads[0]);
        special(tid_y)[l] = static_cast<uint32_t>(t / grid.threads[0] % grid.threads[1]);
        special(tid_z)[l] = static_cast<uint32_t>(t / grid.threads[0] / grid.threads[1]);
        special(laneid)[l] = l;
        for (int axis = 0; axis < 3; ++axis) {
          special(ntid_x + axis)[l] = grid.threads[axis];
          special(ctaid_x + axis)[l] = static_cast<uint32_t>(place[axis]);
          special(nctaid_x + axis)[l] = grid.blocks[axis];
        }
        w.pc[l] = 0;
        w.state[l] = t < threads ? Warp::ready : Warp::done;
        w.copies[l].clear();
      }
      w.number = static_cast<int>(n);
      w.fence_time = w.fence_before_barrier = w.barriers_at_fence = 0;
      w.products_begun = false;
      w.products.clear();
    }
    block.time = block.barriers = 0;
    block.written.assign(f.for_warpgroups ? (block.shared_bytes + 15) / 16 : 0, {});
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (Warp& w : warps) {
        advance(w, f);
        goes_on |= lanes_in(w, Warp::at_barrier) != 0;
      }
      if (goes_on) pass_barrier(warps, f);
    }
  }
  running = nullptr;
  if (!counting) return;
  const auto known =
      std::find_if(counted.begin(), counted.end(), [&](const auto& k) { return k.first == f.name; });
  Traffic& sum = known != counted.end() ? known->second : counted.emplace_back(f.name, Traffic{}).second;
  sum.launches += 1;
  sum.instructions += traffic.instructions;
  sum.loaded += 32 * traffic.loads.size();
  sum.stored += 32 * traffic.stores.size();
  sum.copied += 32 * traffic.copies.size();
  sum.sectors += traffic.sectors;
  sum.least_sectors += traffic.least_sectors;
  sum.turns += traffic.turns;
  sum.least_turns += traffic.least_turns;
}

void count_traffic(bool begin) {
  if (begin) counted.clear();
  counting = begin;
}
std::vector<std::pair<std::string, Traffic>> traffic() { return counted; }

}  // namespace ptx
