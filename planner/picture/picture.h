// Pictures of a plan: the offset and the purpose of every buffer during a training step. Pure functions
// return the pictures as text: the same plan gives the same bytes. Names in a plan come from files, so they
// are escaped.
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
  bool knee;          // ParetoPoint::is_knee: gets a label in the picture
};

// An HTML page: the arena and the live bytes over time, speed against memory (if `frontier` has points), and
// the decisions.
std::string picture_html(const Graph& graph, const Plan& plan, const Programs& programs,
                         const std::vector<FrontierPoint>& frontier);
// Only the arena over time, as SVG. The title of each rectangle describes its buffer.
std::string picture_svg(const Graph& graph, const Plan& plan, const Programs& programs);
// The buffers of the program that reaches the peak, in the format of offset-packing tools:
// id,lower,upper,size and offset,name,class. Lifetimes are half-open. Persistent buffers live from 0 to the
// end. Sizes are multiples of the alignment, so that the largest offset + size is the size of the arena.
std::string picture_csv(const Graph& graph, const Programs& programs);

}  // namespace stw
