#include "planner/picture/marks.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace stw::picture {

namespace {

// The height is divided into this many rows. Neighbouring persistent buffers that are thinner than a row
// share a mark.
constexpr int persistent_rows = 400;

const char* persistent_reason(Role role) {
  switch (role) {
    case Role::parameter: return "parameter";
    case Role::master: return "master weights: the bits of the fp32 value that the parameter lacks";
    case Role::gradient: return "gradient, summed over the micro-steps until the update";
    case Role::optimizer: return "optimizer state";
    case Role::constant: return "table of constants";
    case Role::state: return "state of the step: counters, loss, norm";
    default: return "";
  }
}

class Marker {
 public:
  Marker(const Graph& graph, const Programs& programs, const Timeline& timeline)
      : graph_(graph), programs_(programs), timeline_(timeline) {}

  Marks run() {
    add_persistent();
    std::vector<Mark> single;
    for (const Section& s : timeline_.sections()) {
      const std::vector<std::vector<int>> held = held_tensors(*s.program);
      for (size_t b = 0; b < held.size(); ++b) single.push_back(mark_of(s.program->buffers[b], s, held[b]));
    }
    marks_.buffers += static_cast<int>(single.size());
    int columns = 1024, rows = 512;
    std::vector<Mark> drawn = single;
    for (; drawn.size() > largest_mark_count && columns > 16;
         columns = columns * 3 / 4, rows = rows * 3 / 4) {
      drawn = on_grid(single, columns, rows);
      marks_.columns = columns;
      marks_.rows = rows;
    }
    marks_.all.insert(marks_.all.end(), drawn.begin(), drawn.end());
    return std::move(marks_);
  }

 private:
  void add_persistent() {
    const uint64_t row = programs_.arena_bytes / persistent_rows;
    bool open = false;  // the last mark is a run of thin buffers, to which more can be added
    for (const Buffer& b : programs_.arena.persistent) {
      const Tensor& t = graph_.at(b.tensor);
      Mark m{
          b.owner,
          0,
          timeline_.instructions() - 1,
          b.offset,
          b.offset + b.bytes,
          b.bytes,
          1,
          marks_.strings.id(t.name),
          marks_.strings.id(""),
          marks_.strings.id(b.tensor == graph_.kept.ids || b.tensor == graph_.kept.rows
                                ? "kept for the gradient of the token table, which is " +
                                      std::string(graph_.kept.formed < 0 ? "summed after the last micro-step"
                                                                         : "formed at the update")
                                : persistent_reason(t.role)),
          true};
      if (b.owner == MemoryClass::gradients) m.last = timeline_.gradients_end() - 1;
      ++marks_.buffers;
      const bool thin = b.bytes < row;
      if (open && thin && marks_.all.back().reason == m.reason) {
        Mark& run = marks_.all.back();
        run.end = m.end;
        run.bytes += m.bytes;
        ++run.count;
        last_name_ = t.name;
        open = run.end - run.offset < row;
        if (!open) name_merged();
        continue;
      }
      if (open) name_merged();
      marks_.all.push_back(m);
      first_name_ = last_name_ = t.name;
      open = thin;
    }
    if (open) name_merged();
  }
  void name_merged() {
    Mark& run = marks_.all.back();
    if (run.count > 1)
      run.name = marks_.strings.id(first_name_ + " … " + last_name_ + " (" + std::to_string(run.count) +
                                   " tensors)");
  }

  // The tensors that each buffer holds one after the other. In-place ops pass a buffer on.
  std::vector<std::vector<int>> held_tensors(const Program& program) const {
    std::vector<std::vector<int>> held(program.buffers.size());
    for (size_t b = 0; b < held.size(); ++b)
      if (program.buffers[b].tensor >= 0) held[b].push_back(program.buffers[b].tensor);
    for (const Instruction& i : program.instructions)
      for (int of = 0; of < i.ops; ++of) {
        const Instruction one = op_alone(graph_, i, of);
        for (int k = 0; k < one.outputs; ++k) {
          const Operand& o = program.operands[one.first_operand + one.inputs + k];
          const int t = graph_.op(one.op).outputs[k];
          if (o.buffer < 0 || o.persistent || t < 0) continue;
          std::vector<int>& list = held[o.buffer];
          if (list.empty() || list.back() != t) list.push_back(t);
        }
      }
    return held;
  }

  std::string name_of(const std::vector<int>& held) const {
    if (held.empty()) return "scratch memory";
    std::string text;
    for (size_t i = 0; i < held.size(); ++i) {
      if (i > 0 && graph_.at(held[i]).name == graph_.at(held[i - 1]).name) continue;
      if (i == 3 && held.size() > 4) return text + ", … " + graph_.at(held.back()).name;
      text += (i == 0 ? "" : ", then ") + graph_.at(held[i]).name;
    }
    return text;
  }

  Mark mark_of(const Buffer& b, const Section& s, const std::vector<int>& held) {
    const int first = s.first + b.first;
    Mark m{b.owner, first, s.first + b.last, b.offset, b.offset + b.bytes, b.bytes, 1, 0, 0, 0, false};
    const bool scratch = b.tensor < 0;
    m.name = marks_.strings.id(name_of(held));
    const int segment = scratch ? -1 : graph_.at(b.tensor).segment;
    const bool input = b.owner == MemoryClass::inputs;
    m.place = marks_.strings.id(segment >= 0 ? graph_.segment_name(segment)
                                : input      ? ""
                                             : timeline_.place(first));
    m.reason = marks_.strings.id(reason_of(b, first, held));
    return m;
  }

  std::string reason_of(const Buffer& b, int first, const std::vector<int>& held) const {
    if (b.tensor < 0) return "scratch memory of " + timeline_.label(first);
    const Tensor& t = graph_.at(b.tensor);
    if (b.owner == MemoryClass::inputs) return "input of the program";
    if (t.role == Role::cache) return "cache of keys and values";
    if (b.owner == MemoryClass::saved_activations) {
      const bool is_output = std::any_of(held.begin(), held.end(), [&](int each) {
        const int segment = graph_.at(each).segment;
        return segment >= 0 && graph_.segments[segment].output == each;
      });
      return is_output ? "kept for backward: the input of the next segment" : "kept for backward";
    }
    if (programs_.arena.on_host(b.tensor) && t.role == Role::activation &&
        timeline_.at(first).kind == OpKind::fetch)
      return "fetched for backward from host memory, where it was kept";
    if (programs_.arena.on_host(b.tensor) && t.role != Role::activation)
      return timeline_.at(first).kind == OpKind::fetch
                 ? "fetched: " + std::string(persistent_reason(t.role)) + ", which lies in host memory"
                 : "on its way to host memory: " + std::string(persistent_reason(t.role));
    if (graph_.fuses_updates() && t.role == Role::activation && t.segment < 0)
      return "gradient, used up by the update that follows";
    if (timeline_.at(first).phase == Phase::recompute) return "computed again at this point for backward";
    return "transient: its place is free again after its last use";
  }

  // Merges marks of the same class that begin in the same cell of the grid and end in the same cell. The
  // merged mark covers all of them, so each of its sides is off by less than a cell.
  std::vector<Mark> on_grid(const std::vector<Mark>& single, int columns, int rows) {
    std::map<std::tuple<MemoryClass, int, int, int, int>, size_t> cells;
    std::vector<Mark> drawn;
    std::vector<uint64_t> largest;
    const double height = static_cast<double>(programs_.arena_bytes);
    auto column = [&](int i) { return static_cast<int>(timeline_.x(i) * columns); };
    auto row = [&](uint64_t offset) { return static_cast<int>(static_cast<double>(offset) / height * rows); };
    for (const Mark& m : single) {
      const auto [cell, added] = cells.emplace(
          std::tuple{m.owner, column(m.first), column(m.last), row(m.offset), row(m.end)}, drawn.size());
      if (added) {
        drawn.push_back(m);
        largest.push_back(m.bytes);
        continue;
      }
      Mark& d = drawn[cell->second];
      d.first = std::min(d.first, m.first);
      d.last = std::max(d.last, m.last);
      d.offset = std::min(d.offset, m.offset);
      d.end = std::max(d.end, m.end);
      d.bytes = size_add(d.bytes, m.bytes);
      ++d.count;
      if (m.bytes <= largest[cell->second]) continue;
      largest[cell->second] = m.bytes;  // a merged mark has the name of its largest part
      std::tie(d.name, d.place, d.reason) = std::tie(m.name, m.place, m.reason);
    }
    return drawn;
  }

  const Graph& graph_;
  const Programs& programs_;
  const Timeline& timeline_;
  Marks marks_;
  std::string first_name_, last_name_;
};

}  // namespace

Marks make_marks(const Graph& graph, const Programs& programs, const Timeline& timeline) {
  return Marker(graph, programs, timeline).run();
}

std::string life_of(const Mark& m, const Timeline& timeline) {
  if (m.persistent)
    return m.owner == MemoryClass::gradients ? "from the first micro-step to the update" : "the whole run";
  const std::string from = timeline.moment(m.first);
  return m.first == m.last ? "during " + from : "from " + from + " to " + timeline.moment(m.last);
}

}  // namespace stw::picture
