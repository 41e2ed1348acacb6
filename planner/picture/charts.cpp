#include "planner/picture/charts.h"

#include <algorithm>

#include "planner/base/figures.h"

namespace stw::picture {

namespace {

constexpr Box unit{0, 0, 1000, 1000};
// The room that a block number of three digits needs, as a share of the width.
constexpr double room_on_desktop = 0.028, room_on_phone = 0.07;

// `zoomed`: the part of the height that the zoom shows, in thousandths.
std::string svg(const std::string& content, double zoomed = 1000) {
  return "<svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" aria-hidden=\"true\" data-zoom=\"" +
         number(zoomed) + "\">\n" + content + "</svg>\n";
}

std::string vertical(double share, const char* kind) {
  const std::string x = number(share * 1000);
  return "<line class=\"" + std::string(kind) + "\" x1=\"" + x + "\" x2=\"" + x +
         "\" y1=\"0\" y2=\"1000\"/>\n";
}

std::string horizontal(double share) {
  const std::string y = number(1000 - share * 1000);
  return "<line class=\"grid\" x1=\"0\" x2=\"1000\" y1=\"" + y + "\" y2=\"" + y + "\"/>\n";
}

std::string left_axis(const std::vector<Tick>& ticks, double top, std::string& grid) {
  std::string out = "<div class=\"ys\" aria-hidden=\"true\">";
  for (const Tick& t : ticks) {
    grid += horizontal(t.value / top);
    out += "<span style=\"bottom:" + percent(t.value / top) + "\">" + t.text + "</span>";
  }
  return out + "</div>\n";
}

// The axis of bytes, for the whole arena and for the zoom. Grid lines scale with the marks.
std::string axis_of_bytes(const Range& range, uint64_t top, int ticks, std::string& grid) {
  std::string out = "<div class=\"ys\" aria-hidden=\"true\">", whole, zoomed;
  const double high = static_cast<double>(top), shown = static_cast<double>(top - range.base);
  for (const Tick& t : byte_ticks(0, range.bytes, ticks)) {
    whole += horizontal(t.value / high);
    out += "<span class=\"f\" style=\"bottom:" + percent(t.value / high) + "\">" + t.text + "</span>";
  }
  for (const Tick& t : byte_ticks(range.base, range.bytes, ticks)) {
    zoomed += horizontal(t.value / high);
    out +=
        "<span class=\"z\" style=\"bottom:" + percent((t.value - static_cast<double>(range.base)) / shown) +
        "\">" + t.text + "</span>";
  }
  grid += "<g class=\"f\">" + whole + "</g><g class=\"z\">" + zoomed + "</g>\n";
  return out + "</div>\n";
}

double zoomed_height(const Range& range, uint64_t top) {
  return 1000 * static_cast<double>(top - range.base) / static_cast<double>(top);
}

// The names on the marks. `box` may reach below the picture.
std::string names_on(const Marks& marks, const Timeline& timeline, const Box& box, uint64_t top,
                     const char* kind) {
  std::string out = "<div class=\"names " + std::string(kind) + "\" aria-hidden=\"true\">";
  for (const Caption& l : labels(marks, timeline, box, top, 45, 27)) {
    if (l.y + l.height > 1001) continue;
    out += std::string("<span class=\"") + (l.width < 170 ? "m " : "") + "t" +
           std::to_string(static_cast<int>(l.mark->owner)) + "\" style=\"left:" + percent(l.x / 1000) +
           ";top:" + percent(l.y / 1000) + ";width:" + percent(l.width / 1000) + "\">" +
           escaped(marks.strings.at(l.mark->name)) + "</span>";
  }
  return out + "</div>\n";
}

// The opening tag of a plot that can have the focus.
std::string plot_opening(const char* id, const char* kind, const std::string& label) {
  return "<div class=\"plot" + std::string(kind) + "\" id=\"" + id +
         "\" tabindex=\"0\" role=\"application\" aria-label=\"" + escaped(label) +
         "\" aria-describedby=\"tip\">\n";
}

std::string time_axis(const Timeline& timeline) {
  std::string out = "<div class=\"xs\" aria-hidden=\"true\">";
  const std::vector<Span> few = block_numbers(timeline, room_on_phone);
  for (const Span& s : block_numbers(timeline, room_on_desktop)) {
    const bool stays =
        std::any_of(few.begin(), few.end(), [&](const Span& each) { return each.begin == s.begin; });
    out += std::string("<span") + (stays ? "" : " class=\"m\"") +
           " style=\"left:" + percent((s.begin + s.end) / 2) + "\">" + s.text + "</span>";
  }
  for (const Span& s : recomputed(timeline))
    out += "<i style=\"left:" + percent(s.begin) + ";width:" + percent(s.end - s.begin) + "\"></i>";
  for (const Span& s : groups(timeline))
    out += "<b style=\"left:" + percent(s.begin) + ";width:" + percent(s.end - s.begin) + "\"><u>" + s.text +
           "</u></b>";
  return out + "</div>\n";
}

std::string dividers(const Timeline& timeline) {
  std::string out;
  for (const Section& s : timeline.sections())
    if (s.first > 0) out += vertical(s.begin, "edge");
  return out;
}

double peak_share(const Timeline& timeline) {
  return (timeline.x(timeline.peak()) + timeline.right(timeline.peak())) / 2;
}

// A note next to the line of the peak, on the side with more room.
std::string peak_note(const Timeline& timeline, const std::string& text) {
  const double share = peak_share(timeline);
  return "<div class=\"peak-note\" style=\"" +
         (share > 0.5 ? "right:" + percent(1 - share) : "left:" + percent(share)) + "\">" + escaped(text) +
         "</div>\n";
}

std::string stack(const std::vector<Column>& columns, const Timeline& timeline, uint64_t bytes,
                  size_t level) {
  std::string top, bottom;
  std::vector<std::pair<std::string, std::string>> corners;  // corners of the lower side, from left to right
  std::string last_top, last_bottom;
  for (const Column& c : columns) {
    uint64_t below = 0;
    for (size_t k = 0; k < level; ++k) below += c.live[stack_order[k]];
    const double scale = 1000 / static_cast<double>(bytes);
    const std::string high =
        number(1000 - static_cast<double>(below + c.live[stack_order[level]]) * scale, 2);
    const std::string low = number(1000 - static_cast<double>(below) * scale, 2);
    const std::string x = number(timeline.x(c.first) * 1000, 2);
    if (high != last_top) top += top.empty() ? "M" + x + " " + high : "H" + x + "V" + high;
    if (low != last_bottom) corners.push_back({x, low});
    last_top = high;
    last_bottom = low;
  }
  for (size_t i = corners.size(); i-- > 0;) bottom += "V" + corners[i].second + "H" + corners[i].first;
  const std::string owner = std::to_string(stack_order[level]);
  return "<path class=\"c" + owner + "\" d=\"" + top + "H1000" + bottom + "Z\"/>\n";
}

}  // namespace

double tokens_per_second(const Plan& plan) {
  return static_cast<double>(plan.request.global_batch) * static_cast<double>(plan.request.sequence) /
         (static_cast<double>(plan.step_picoseconds) * 1e-12);
}

std::string arena_chart(const Marks& marks, const Timeline& timeline, const Range& range) {
  const uint64_t top = range.bytes + (range.bytes - range.base) / 20;
  const double zoomed = zoomed_height(range, top);
  std::string grid;
  const std::string axis = axis_of_bytes(range, top, 8, grid);
  return "<figure>\n<div class=\"frame\">\n" + axis +
         plot_opening("arena", "",
                      "Arena: offsets in memory against instructions. Arrow keys go from buffer to buffer.") +
         svg(grid + "<g class=\"marks\">\n" + rectangles(marks, timeline, unit, top, false) + "</g>\n" +
                 dividers(timeline) + vertical(peak_share(timeline), "peak"),
             zoomed) +
         names_on(marks, timeline, unit, top, "f") +
         names_on(marks, timeline, {0, 0, 1000, 1e6 / zoomed}, top, "z") +
         "<div class=\"cross\"></div><div class=\"mark\"></div>\n</div>\n" + time_axis(timeline) +
         "</div>\n</figure>\n";
}

std::string live_chart(const std::vector<Column>& columns, const Timeline& timeline, const Range& range) {
  const uint64_t top = range.bytes + (range.bytes - range.base) / 20;
  std::string grid, areas;
  const std::string axis = axis_of_bytes(range, top, 4, grid);
  for (size_t level = 0; level < class_count; ++level) areas += stack(columns, timeline, top, level);
  uint64_t most = 0;
  for (const Column& c : columns)
    if (timeline.peak() >= c.first && timeline.peak() < c.end) most = c.total();
  return "<figure class=\"with-note\">\n<div class=\"frame\">\n" + axis +
         plot_opening(
             "live", " low",
             "Live bytes by class against instructions. Arrow keys go from instruction to instruction.") +
         svg(grid + areas + dividers(timeline) + vertical(peak_share(timeline), "peak"),
             zoomed_height(range, top)) +
         peak_note(timeline, "peak: " + human_bytes(most) + " live") +
         "<div class=\"cross\"></div>\n</div>\n" + time_axis(timeline) + "</div>\n</figure>\n";
}

Frontier place_frontier(const std::vector<FrontierPoint>& points, const Plan& plan) {
  Frontier f{{}, plan.bytes.peak, tokens_per_second(plan)};
  for (const FrontierPoint& p : points) {
    f.points.push_back({&p, 0, 0, 0});
    f.bytes = std::max(f.bytes, p.peak_bytes);
    f.tokens = std::max(f.tokens, p.tokens_per_second);
  }
  f.bytes += f.bytes / 14;
  f.tokens *= 1.18;
  std::stable_sort(f.points.begin(), f.points.end(), [](const PlacedPoint& a, const PlacedPoint& b) {
    return a.point->peak_bytes < b.point->peak_bytes;
  });
  int knees = 0;
  for (PlacedPoint& p : f.points) {
    p.x = static_cast<double>(p.point->peak_bytes) / static_cast<double>(f.bytes);
    p.y = p.point->tokens_per_second / f.tokens;
    if (p.point->knee) p.knee = ++knees;
  }
  return f;
}

std::string frontier_chart(const Frontier& f, const Plan& plan) {
  std::string grid, marks, numbers, curve, xs;
  const std::string axis = left_axis(decimal_ticks(f.tokens, 5), f.tokens, grid);
  const double x_here = static_cast<double>(plan.bytes.peak) / static_cast<double>(f.bytes),
               y_here = tokens_per_second(plan) / f.tokens;
  auto dot = [&](double x, double y, const char* kind) {
    marks += "<path class=\"dot" + std::string(kind) + "\" d=\"M" + number(x * 1000) + " " +
             number(1000 - y * 1000) + "h0\"/>\n";
  };
  auto note = [&](double x, double y, const std::string& text, const char* kind) {
    numbers += "<span class=\"" + std::string(kind) + "\" style=\"left:" + percent(x) +
               ";top:" + percent(1 - y) + "\">" + text + "</span>";
  };
  std::string here = "this plan";
  double best = 0;  // a step curve: between two points, the speed of the left one holds
  for (const PlacedPoint& p : f.points) {
    best = std::max(best, p.y);
    curve += (curve.empty() ? "M" : "H") + number(p.x * 1000) + (curve.empty() ? " " : "V") +
             number(1000 - best * 1000);
    const bool is_here = p.point->peak_bytes == plan.bytes.peak;
    if (p.knee == 0) dot(p.x, p.y, "");
    else dot(p.x, p.y, " knee");
    if (p.knee > 0 && is_here) here += " (" + std::to_string(p.knee) + ")";
    else if (p.knee > 0) note(p.x, p.y, std::to_string(p.knee), "at");
  }
  dot(x_here, y_here, " here");
  note(x_here, y_here, here, "current");
  for (const Tick& t : byte_ticks(0, f.bytes, 6))
    xs +=
        "<span style=\"left:" + percent(t.value / static_cast<double>(f.bytes)) + "\">" + t.text + "</span>";
  if (plan.bytes.budget < f.bytes)
    marks += vertical(static_cast<double>(plan.bytes.budget) / static_cast<double>(f.bytes), "peak");
  return "<figure>\n<div class=\"frame\">\n" + axis +
         plot_opening("frontier", " low",
                      "Tokens a second against memory. Arrow keys go from plan to plan.") +
         svg(grid + "<path class=\"curve\" d=\"" + curve + "H1000\"/>\n" + marks) +
         "<div class=\"numbers\" aria-hidden=\"true\">" + numbers +
         "</div>\n</div>\n<div class=\"xs plain\" aria-hidden=\"true\">" + xs +
         "<span class=\"name\">peak memory</span></div>\n</div>\n</figure>\n";
}

}  // namespace stw::picture
