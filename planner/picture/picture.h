// Pictures of a plan: the place and the purpose of every buffer through a training step. They are pure
// functions that return text: the same plan gives the same bytes. Names come from files and are escaped.
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
  std::string label;  // its decisions, in words
  bool knee;          // gets a label in the picture
};

// A page: the arena and the live bytes over time, speed against memory (if there are points), and the
// decisions.
std::string picture_html(const Graph& graph, const Plan& plan, const Programs& programs,
                         const std::vector<FrontierPoint>& frontier);
// The arena over time alone. The rectangles' titles describe them.
std::string picture_svg(const Graph& graph, const Plan& plan, const Programs& programs);
// The buffers of the program that reaches the peak, in the format of offset-packing tools:
// id,lower,upper,size and offset,name,class. Lifetimes are half-open. Persistent buffers live from 0 to the
// end. Sizes are multiples of the alignment, so that the largest offset + size is the size of the arena.
std::string picture_csv(const Graph& graph, const Programs& programs);

}  // namespace stw
