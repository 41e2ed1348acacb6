// The charts of the page, as figures of HTML. Marks are SVG that stretches with the page; text is not, and stays readable.
#pragma once
#include <string>
#include <vector>

#include "planner/picture/picture.h"
#include "planner/picture/axis.h"

namespace stw::picture {

// Both can zoom to what lies above `base`, where the persistent tensors end.
struct Range { uint64_t base, bytes; };
std::string arena_chart(const Marks& marks, const Timeline& timeline, const Range& range);
std::string live_chart(const std::vector<Column>& columns, const Timeline& timeline, const Range& range);

// Points by peak, where they lie in the chart.
struct PlacedPoint { const FrontierPoint* point; double x, y; int knee; };   // knee: its number from 1, or 0
struct Frontier {
  std::vector<PlacedPoint> points;
  uint64_t bytes;        // that the width stands for
  double tokens;         // that the height stands for
};
Frontier place_frontier(const std::vector<FrontierPoint>& points, const Plan& plan);
std::string frontier_chart(const Frontier& frontier, const Plan& plan);

// For the script: what the marks are, the instructions, the columns of live bytes, the points of the frontier.
std::string script_data(const Marks& marks, const Timeline& timeline, const std::vector<Column>& columns,
                        const Frontier& frontier);

double tokens_per_second(const Plan& plan);

}  // namespace stw::picture
