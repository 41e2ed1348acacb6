// Axes of the pictures: bytes in binary units, and instructions by the segments of the model.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "planner/picture/marks.h"
#include "planner/picture/timeline.h"

namespace stw::picture {

// Classes from the bottom of a stack to its top, in the order of the arena.
inline constexpr std::array<size_t, class_count> stack_order = {0, 2, 1, 6, 3, 4, 5};

struct Tick {
  double value;
  std::string text;
};
// At most about `count` ticks from `low` to `top`. Their distance is a power of two.
std::vector<Tick> byte_ticks(uint64_t low, uint64_t top, int count);
// At most about `count` ticks from 0 to `high`, at multiples of 1, 2 or 5 times a power of ten. Texts are
// grouped: "12,000".
std::vector<Tick> decimal_ticks(double high, int count);

// Spans of the time axis, as shares of the width.
struct Span {
  double begin, end;
  std::string text;
};
std::vector<Span> groups(const Timeline& timeline);  // forward, head, backward, update
// The numbers of blocks: of every block, or of every k-th if there is less than `room` for each number.
std::vector<Span> block_numbers(const Timeline& timeline, double room);
// Spans of recompute; spans that nearly touch are merged.
std::vector<Span> recomputed(const Timeline& timeline);

// The box in which the rectangles are drawn. From left to right it goes from x to x + width. Offset 0 is
// drawn at y + height, and offset `bytes` at y.
struct Box {
  double x, y, width, height;
};
// One SVG rect for each mark, in order. Each has a CSS class c0 to c6, and the class `o` (an outline) if it
// is large enough.
std::string rectangles(const Marks& marks, const Timeline& timeline, const Box& box, uint64_t bytes,
                       bool titles);
// Names that fit into their marks, largest marks first.
struct Caption {
  const Mark* mark;
  double x, y, width, height;
};
std::vector<Caption> labels(const Marks& marks, const Timeline& timeline, const Box& box, uint64_t bytes,
                            double least_width, double least_height);

}  // namespace stw::picture
