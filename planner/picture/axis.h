// Axes of the pictures: bytes in binary units, instructions by the segments of the model.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "planner/picture/marks.h"
#include "planner/picture/timeline.h"

namespace stw::picture {

// Classes from the bottom of a stack to its top, as they lie in the arena.
inline constexpr std::array<size_t, class_count> stack_order = {0, 2, 1, 6, 3, 4, 5};

struct Tick { double value; std::string text; };
// At most about `count` ticks from `low` to `top`, a power of two apart.
std::vector<Tick> byte_ticks(uint64_t low, uint64_t top, int count);
// At most about `count` ticks from 0 to `high` at 1, 2 or 5 times a power of ten; texts are grouped: "12,000".
std::vector<Tick> decimal_ticks(double high, int count);

// Spans of the time axis, in shares of the width.
struct Span { double begin, end; std::string text; };
std::vector<Span> groups(const Timeline& timeline);   // forward, head, backward, update
// Numbers of blocks, as many as have `room` each.
std::vector<Span> block_numbers(const Timeline& timeline, double room);
// Where instructions run again, as few spans as show the same.
std::vector<Span> recomputed(const Timeline& timeline);

// Where rectangles go: x to x + width from left to right, y + height to y from offset 0 to `bytes`.
struct Box { double x, y, width, height; };
// One rect for each mark, in order, each in a class c0…c6 (and `o`, for an outline, where it is large enough).
std::string rectangles(const Marks& marks, const Timeline& timeline, const Box& box, uint64_t bytes, bool titles);
// Names that fit into their marks, largest marks first.
struct Caption { const Mark* mark; double x, y, width, height; };
std::vector<Caption> labels(const Marks& marks, const Timeline& timeline, const Box& box, uint64_t bytes, double least_width,
                          double least_height);

}  // namespace stw::picture
