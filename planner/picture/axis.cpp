#include "planner/picture/axis.h"

#include <algorithm>

#include "planner/base/figures.h"

namespace stw::picture {

namespace {

Box place(const Mark& m, const Timeline& timeline, const Box& box, uint64_t bytes) {
  const double left = timeline.x(m.first), right = timeline.right(m.last);
  const double scale = box.height / static_cast<double>(std::max<uint64_t>(1, bytes));
  return {box.x + left * box.width, box.y + box.height - static_cast<double>(m.end) * scale,
          (right - left) * box.width, static_cast<double>(m.end - m.offset) * scale};
}

}  // namespace

std::vector<Tick> byte_ticks(uint64_t low, uint64_t top, int count) {
  uint64_t step = 1;
  while ((top - low) / step > static_cast<uint64_t>(count)) step *= 2;
  // Chooses the largest unit in which the step is at least 1/8.
  constexpr const char* units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  size_t unit = 0;
  while (unit < 4 && step >= uint64_t{128} << (unit * 10)) ++unit;
  const double scale = static_cast<double>(uint64_t{1} << (unit * 10));
  std::vector<Tick> ticks;
  for (uint64_t at = ceil_div(low, step) * step; at <= top; at += step) {
    const double value = static_cast<double>(at) / scale;
    ticks.push_back(
        {static_cast<double>(at),
         at == 0 ? "0"
                 : (value >= 1000 ? grouped(static_cast<uint64_t>(value)) : number(value)) + units[unit]});
  }
  return ticks;
}

std::vector<Tick> decimal_ticks(double high, int count) {
  std::vector<Tick> ticks;
  if (!(high > 0)) return ticks;
  // Uses only multiplication and division: a logarithm may differ between machines.
  const double raw = high / count;
  double power = 1;
  int decimals = 0;
  for (; power * 10 <= raw && power < 1e300; power *= 10) {}
  for (; power > raw && decimals < 15; power /= 10) ++decimals;
  const double step = power * (raw / power <= 1 ? 1 : raw / power <= 2 ? 2 : raw / power <= 5 ? 5 : 10);
  for (int k = 0; k * step <= high + step * 1e-9; ++k)
    ticks.push_back({k * step, decimals > 0 ? fixed_point(k * step, decimals) : whole(k * step)});
  return ticks;
}

std::vector<Span> groups(const Timeline& timeline) {
  std::vector<Span> spans;
  const Run* last = nullptr;
  for (const Run& run : timeline.runs()) {
    const Section& s = timeline.section_of(run.first);
    const bool same = last && last->group == run.group && &timeline.section_of(last->first) == &s;
    if (!same) spans.push_back({timeline.x(run.first), 0, group_name(run.group)});
    spans.back().end = timeline.right(run.end - 1);
    last = &run;
  }
  return spans;
}

std::vector<Span> block_numbers(const Timeline& timeline, double room) {
  struct Numbered {
    Span span;
    int block;
  };
  std::vector<Numbered> all;
  double narrowest = 1;
  int blocks = 0;
  for (const Run& run : timeline.runs()) {
    const int block = timeline.block(run.segment);
    if (block < 0 || timeline.section_of(run.first).first != 0) continue;
    const Span span{timeline.x(run.first), timeline.right(run.end - 1), std::to_string(block)};
    narrowest = std::min(narrowest, span.end - span.begin);
    blocks = std::max(blocks, block + 1);
    all.push_back({span, block});
  }
  // Every k-th number, where k is 1, 2 or 5 times a power of ten.
  int step = 1;
  for (int k = 0; narrowest * step < room && step < blocks; ++k) step = k % 3 == 1 ? step / 2 * 5 : step * 2;
  std::vector<Span> spans;
  for (const Numbered& each : all)
    if (each.block % step == 0) spans.push_back(each.span);
  return spans;
}

std::vector<Span> recomputed(const Timeline& timeline) {
  constexpr double gap = 0.0005;  // of the width; smaller gaps are invisible
  std::vector<Span> spans;
  for (int i = 0; i < timeline.instructions(); ++i) {
    if (timeline.at(i).phase != Phase::recompute) continue;
    if (spans.empty() || timeline.x(i) - spans.back().end > gap) spans.push_back({timeline.x(i), 0, ""});
    spans.back().end = timeline.right(i);
  }
  return spans;
}

std::string rectangles(const Marks& marks, const Timeline& timeline, const Box& box, uint64_t bytes,
                       bool titles) {
  std::string out;
  for (const Mark& m : marks.all) {
    const Box r = place(m, timeline, box, bytes);
    out += "<rect class=\"c" + std::to_string(static_cast<int>(m.owner)) +
           (r.width > box.width * 0.006 && r.height > box.height * 0.014 ? " o" : "") + "\" x=\"" +
           number(r.x) + "\" y=\"" + number(r.y) + "\" width=\"" + number(r.width) + "\" height=\"" +
           number(r.height) + "\"";
    if (!titles) {
      out += "/>\n";
      continue;
    }
    const std::string& where = marks.strings.at(m.place);
    out += "><title>" + escaped(marks.strings.at(m.name)) + (where.empty() ? "" : ", " + escaped(where)) +
           (m.count > 1 && !m.persistent ? " and " + std::to_string(m.count - 1) + " like it" : "") +
           "&#10;" + class_titles[static_cast<size_t>(m.owner)] + ", " + human_bytes(m.bytes) + " (" +
           grouped(m.bytes) + " bytes)&#10;" + escaped(life_of(m, timeline)) + "&#10;" +
           escaped(marks.strings.at(m.reason)) + "</title></rect>\n";
  }
  return out;
}

std::vector<Caption> labels(const Marks& marks, const Timeline& timeline, const Box& box, uint64_t bytes,
                            double least_width, double least_height) {
  std::vector<Caption> list;
  for (const Mark& m : marks.all) {
    const Box r = place(m, timeline, box, bytes);
    if (m.count == 1 && r.width >= least_width && r.height >= least_height)
      list.push_back({&m, r.x, r.y, r.width, r.height});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Caption& a, const Caption& b) { return a.mark->bytes > b.mark->bytes; });
  if (list.size() > 60) list.resize(60);
  return list;
}

}  // namespace stw::picture
