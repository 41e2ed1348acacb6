// The rectangles of the arena's picture. Small plans have one rectangle for every buffer. In larger plans,
// buffers that would be too thin to see are drawn together as one mark, which has the sum of their bytes.
#pragma once
#include <string>
#include <vector>

#include "planner/picture/text.h"
#include "planner/picture/timeline.h"

namespace stw::picture {

struct Mark {
  MemoryClass owner;
  int first, last;       // instructions, both inclusive
  uint64_t offset, end;  // in the arena
  uint64_t bytes;        // of all its buffers
  int count;
  int name, place, reason;  // indices in Marks::strings; `place` may be ""
  bool persistent;
};

struct Marks {
  std::vector<Mark> all;  // marks of persistent buffers come first
  Strings strings;
  int buffers = 0;  // number of buffers in all marks
  // The grid on which buffers of programs were merged into marks. 0: each buffer has its own mark.
  int columns = 0, rows = 0;
};

inline constexpr int largest_mark_count = 6000;

Marks make_marks(const Graph& graph, const Programs& programs, const Timeline& timeline);

// "from norm → attn_norm (block 3, forward) to norm_gradient → … (block 3, backward)"
std::string life_of(const Mark& mark, const Timeline& timeline);

}  // namespace stw::picture
