// The arena as an SVG file.
#include <algorithm>

#include "planner/base/figures.h"
#include "planner/picture/axis.h"
#include "planner/picture/picture.h"
#include "planner/picture/style.h"

namespace stw {

using namespace picture;

namespace {

constexpr double width = 1200, height = 720;
constexpr Box plot{84, 92, 1096, 548};

std::string text(double x, double y, const std::string& content, const char* attributes = "") {
  return "<text x=\"" + number(x, 1) + "\" y=\"" + number(y, 1) + "\" " + attributes + ">" +
         escaped(content) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const char* kind) {
  return "<line class=\"" + std::string(kind) + "\" x1=\"" + number(x1, 1) + "\" y1=\"" + number(y1, 1) +
         "\" x2=\"" + number(x2, 1) + "\" y2=\"" + number(y2, 1) + "\"/>\n";
}

constexpr const char* style = R"css(
svg { background: var(--page); font: 13px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
text { fill: var(--text); }
.soft { fill: var(--soft); }
.end { text-anchor: end; }
.mid { text-anchor: middle; }
.grid { stroke: var(--grid); }
.axis { stroke: var(--axis); }
.peak { stroke: var(--text); stroke-dasharray: 4 3; }
rect { stroke-width: .5; }
.marks .o { stroke: var(--page); stroke-width: .8; }
.marks rect:hover { stroke: var(--text); stroke-width: 1.5; }
.recompute { fill: var(--text); }
.label { font-size: 11px; pointer-events: none; }
)css";

}  // namespace

std::string picture_svg(const Graph& graph, const Plan& plan, const Programs& programs) {
  const Timeline timeline(graph, plan, programs);
  const Marks marks = make_marks(graph, programs, timeline);
  const uint64_t bytes = programs.arena_bytes;
  const double bottom = plot.y + plot.height, right = plot.x + plot.width;
  auto x = [&](double share) { return plot.x + share * plot.width; };
  const std::string title =
      plan.architecture + " on " + plan.request.device + ": an arena of " + human_bytes(bytes);

  std::string s =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width) + " " + number(height) +
      "\" role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">" + escaped(title) +
      "</title>\n<desc id=\"desc\">Offsets in memory against the instructions of a training step; "
      "one rectangle a buffer, coloured by class.</desc>\n<style>" +
      palette + style;
  for (size_t c = 0; c < class_count; ++c) {
    const std::string n = std::to_string(c);
    s += ".c" + n + " { fill: var(--c" + n + "); stroke: var(--c" + n + "); } .t" + n + " { fill: var(--on" +
         n + "); }\n";
  }
  s += "</style>\n" + text(plot.x, 30, title, "font-size=\"17\" font-weight=\"600\"");
  double at = plot.x;
  for (size_t c : stack_order) {
    if (plan.bytes.of[c] == 0) continue;
    s += "<rect class=\"c" + std::to_string(c) + "\" x=\"" + number(at, 1) +
         "\" y=\"47\" width=\"12\" height=\"12\"/>\n";
    s += text(at + 18, 58, class_titles[c], "class=\"soft\"");
    at += 44 + 8 * static_cast<double>(std::string_view(class_titles[c]).size());
  }
  for (const Tick& t : byte_ticks(0, bytes, 8)) {
    const double y = bottom - t.value / static_cast<double>(bytes) * plot.height;
    s += line(plot.x, y, right, y, "grid") + text(plot.x - 8, y + 4, t.text, "class=\"soft end\"");
  }
  s += "<g class=\"marks\">\n" + rectangles(marks, timeline, plot, bytes, true) +
       "</g>\n<g class=\"label\">\n";
  for (const Caption& l : labels(marks, timeline, plot, bytes, 40, 14)) {
    const std::string& name = marks.strings.at(l.mark->name);
    if (6.6 * static_cast<double>(name.size()) + 10 > l.width) continue;
    s += text(l.x + 5, l.y + std::min(l.height - 4, 13.0), name,
              ("class=\"t" + std::to_string(static_cast<int>(l.mark->owner)) + "\"").c_str());
  }
  s += "</g>\n";
  for (const Section& section : timeline.sections())
    if (section.first > 0) s += line(x(section.begin), plot.y, x(section.begin), bottom + 40, "axis");
  const double peak = x((timeline.x(timeline.peak()) + timeline.right(timeline.peak())) / 2);
  s += line(peak, plot.y - 6, peak, bottom, "peak");
  s += text(peak, plot.y - 10, "peak", peak > right - 30 ? "class=\"end\"" : "class=\"mid\"");
  s += line(plot.x, bottom, right, bottom, "axis");
  for (const Span& r : recomputed(timeline))
    s += "<rect class=\"recompute\" x=\"" + number(x(r.begin), 2) + "\" y=\"" + number(bottom + 1) +
         "\" width=\"" + number((r.end - r.begin) * plot.width, 2) + "\" height=\"3\"/>\n";
  for (const Span& n : block_numbers(timeline, 0.02))
    s += text(x((n.begin + n.end) / 2), bottom + 16, n.text, "class=\"soft mid\"");
  for (const Span& g : groups(timeline)) {
    s += line(x(g.begin) + 1, bottom + 23, x(g.end) - 1, bottom + 23, "axis");
    s += text(x((g.begin + g.end) / 2), bottom + 39, g.text, "class=\"mid\"");
  }
  s += text(plot.x, bottom + 62,
            "One micro-step and the update, instruction by instruction; "
            "forward blocks count up, backward ones down." +
                std::string(recomputed(timeline).empty() ? "" : " Bars under the axis: recompute."),
            "class=\"soft\"");
  if (marks.columns > 0)
    s += text(plot.x, bottom + 78,
              "Buffers of one class that lie in the same cell of a grid of " + std::to_string(marks.columns) +
                  " × " + std::to_string(marks.rows) + " are drawn together.",
              "class=\"soft\"");
  return s + "</svg>\n";
}

}  // namespace stw
