// The charts of the page, as HTML figures. Marks are SVG that scales with the page. Text does not scale, so
// that it stays readable.
#pragma once
#include <string>
#include <vector>

#include "planner/picture/axis.h"
#include "planner/picture/picture.h"

namespace stw::picture {

// The vertical range of a chart in bytes. Both charts of the arena can zoom to the part above `base`, where
// the persistent tensors end.
struct Range {
  uint64_t base, bytes;
};
std::string arena_chart(const Marks& marks, const Timeline& timeline, const Range& range);
std::string live_chart(const std::vector<Column>& columns, const Timeline& timeline, const Range& range);

// A point of the frontier with its place in the chart.
struct PlacedPoint {
  const FrontierPoint* point;
  double x, y;  // as shares of the width and the height
  int knee;     // number of the knee, from 1; 0: not a knee
};
struct Frontier {
  std::vector<PlacedPoint> points;
  uint64_t bytes;  // bytes at the full width
  double tokens;   // tokens at the full height
};
Frontier place_frontier(const std::vector<FrontierPoint>& points, const Plan& plan);
std::string frontier_chart(const Frontier& frontier, const Plan& plan);

// Data for the script: the marks, the instructions, the columns of live bytes, the points of the frontier.
std::string script_data(const Marks& marks, const Timeline& timeline, const std::vector<Column>& columns,
                        const Frontier& frontier);

double tokens_per_second(const Plan& plan);

}  // namespace stw::picture
