// Pictures of a plan: where every buffer lies through a training step, and what it is there for. Pure functions to
// text without anything from outside: the same plan gives the same bytes. Names come from files and are escaped.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace stw {

// A plan that some budget would get.
struct FrontierPoint {
  uint64_t peak_bytes;
  double tokens_per_second;
  std::string label;   // its decisions, in words
  bool knee;           // worth a label in the picture
};

// One page: the arena and the live bytes over time, speed against memory (where there are points), the decisions.
std::string picture_html(const Graph& graph, const Plan& plan, const Programs& programs,
                         const std::vector<FrontierPoint>& frontier);
// The arena over time alone; titles of its rectangles say what they are.
std::string picture_svg(const Graph& graph, const Plan& plan, const Programs& programs);
// The buffers of the program that reaches the peak, as offset-packing tools read them: id,lower,upper,size and
// offset,name,class. Lifetimes are half-open; persistent buffers live from 0 to the end. Sizes are multiples of the
// alignment, so that the largest offset + size is the arena.
std::string picture_csv(const Graph& graph, const Programs& programs);

}  // namespace stw
