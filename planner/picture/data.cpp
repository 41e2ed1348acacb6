// The data that the page's script shows, as JSON. Lists are flat, so that the page of a large plan stays
// small. The script (script.cpp) reads them in the same order.
#include "planner/base/figures.h"
#include "planner/picture/charts.h"

namespace stw::picture {

std::string script_data(const Marks& marks, const Timeline& timeline, const std::vector<Column>& columns,
                        const Frontier& f) {
  Strings strings = marks.strings;
  std::string out;
  auto list = [&](const char* name, auto&& fill) {
    out += (out.empty() ? "{\"" : ",\n\"") + std::string(name) + "\":[";
    const size_t begin = out.size();
    fill();
    if (out.size() > begin) out.pop_back();
    out += "]";
  };
  auto put = [&](auto value) { out += std::to_string(value) + ","; };
  list("marks", [&] {
    for (const Mark& m : marks.all) {
      for (int x : {m.name, m.place, m.reason, static_cast<int>(m.owner)}) put(x);
      put(m.bytes);
      for (int x : {m.first, m.last, m.count, int{m.persistent}}) put(x);
    }
  });
  list("instructions", [&] {
    for (int i = 0; i < timeline.instructions(); ++i)
      for (int x : {strings.id(timeline.words(i).op), strings.id(timeline.words(i).tensor),
                    strings.id(timeline.place(i)), static_cast<int>(timeline.at(i).phase)})
        put(x);
  });
  list("sections", [&] {
    for (const Section& s : timeline.sections())
      out += "[" + std::to_string(s.first) + "," + std::to_string(s.instructions()) + "," +
             number(s.begin, 6) + "," + number(s.end, 6) + "],";
  });
  list("columns", [&] {
    for (const Column& c : columns) {
      for (int x : {c.first, c.end, c.instruction}) put(x);
      for (uint64_t bytes : c.live) put(bytes);
    }
  });
  list("frontier", [&] {
    for (const PlacedPoint& p : f.points)
      out += "[" + number(p.x, 5) + "," + number(1 - p.y, 5) + "," + std::to_string(p.point->peak_bytes) +
             ",\"" + whole(p.point->tokens_per_second) + "\"," + quoted(p.point->label) + "],";
  });
  list("phases", [&] {
    for (Phase p : {Phase::forward, Phase::recompute, Phase::backward, Phase::update, Phase::generate})
      out += quoted(Timeline::phase_name(p)) + ",";
  });
  list("classes", [&] {
    for (const char* title : class_titles) out += quoted(title) + ",";
  });
  list("order", [&] {
    for (size_t i = class_count; i-- > 0;) put(stack_order[i]);
  });
  list("labels", [&] {
    for (const std::string& s : strings.all()) out += quoted(s) + ",";
  });
  return out + "}";
}

}  // namespace stw::picture
