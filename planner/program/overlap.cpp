#include "planner/program/overlap.h"

#include <algorithm>

namespace stw {

uint64_t overlapped_picoseconds(const Program& program,
                                const std::function<uint64_t(const Instruction&)>& price) {
  uint64_t sum = 0, ops = 0, fetches = 0, stores = 0;
  int stage = 0;
  auto end_stage = [&] {
    sum = size_add(sum, std::max({ops, fetches, stores}));
    ops = fetches = stores = 0;
  };
  for (const Instruction& i : program.instructions) {
    if (i.stage != stage) end_stage();
    stage = i.stage;
    uint64_t& queue = i.kind == OpKind::fetch ? fetches : i.kind == OpKind::store ? stores : ops;
    queue = size_add(queue, price(i));
  }
  end_stage();
  return sum;
}

}  // namespace stw
