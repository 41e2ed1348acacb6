#include "planner/picture/timeline.h"

#include <algorithm>

namespace stw::picture {

namespace {

Run::Group group_of(const Graph& graph, const Instruction& i, int segment) {
  if (i.phase == Phase::update) return Run::Group::update;
  if (i.phase == Phase::generate) return Run::Group::inference;
  if (segment >= 0 && graph.segments[segment].kind == SegmentKind::head) return Run::Group::head;
  return i.phase == Phase::forward ? Run::Group::forward : Run::Group::backward;
}

}  // namespace

const char* group_name(Run::Group group) {
  constexpr const char* names[] = {"forward", "head", "backward", "update", "generate"};
  return names[static_cast<size_t>(group)];
}

uint64_t Column::total() const {
  uint64_t sum = 0;
  for (uint64_t bytes : live) sum = size_add(sum, bytes);
  return sum;
}

Timeline::Timeline(const Graph& graph, const Plan& plan, const Programs& programs)
    : graph_(graph), arena_(programs.arena) {
  const auto [top, moment] = peak_moment(programs);
  const Program& micro = plan.accumulation_steps > 1 ? programs.micro_next : programs.micro_first;
  add(micro,
      plan.accumulation_steps > 1 ? "micro-step, " + std::to_string(plan.accumulation_steps) + " times"
                                  : "micro-step",
      1);
  add(programs.update, "update", 0.16);
  const bool is_training =
      top == &programs.micro_first || top == &programs.micro_next || top == &programs.update;
  if (!is_training) add(*top, top->name, 0.3);
  const double width = sections_.back().end;
  for (Section& s : sections_) {
    s.begin /= width;
    s.end /= width;
  }
  const size_t peak_section = top == &programs.update ? 1 : is_training ? 0 : 2;
  peak_ = sections_[peak_section].first + moment;
}

void Timeline::add(const Program& program, std::string title, double width) {
  const int first = sections_.empty() ? 0 : instructions();
  const double begin = sections_.empty() ? 0 : sections_.back().end;
  sections_.push_back({&program, std::move(title), first, begin, begin + width});
  bool continues = false;  // a run never spans two programs
  for (int n = 0; n < sections_.back().instructions(); ++n) {
    const Instruction& i = program.instructions[n];
    const int segment = graph_.op(i.op).segment;
    const Run::Group group = group_of(graph_, i, segment);
    // Copies to and from host memory, and updates inside the backward pass, belong to no segment; they
    // continue the current run.
    const bool is_between_segments =
        is_transfer(i.kind) || (i.phase == Phase::update && sections_.size() == 1);
    if (continues &&
        (is_between_segments || (runs_.back().group == group && runs_.back().segment == segment)))
      ++runs_.back().end;
    else runs_.push_back({group, segment, first + n, first + n + 1});
    continues = true;
  }
}

const Section& Timeline::section_of(int instruction) const {
  size_t s = 0;
  while (s + 1 < sections_.size() && instruction >= sections_[s + 1].first) ++s;
  return sections_[s];
}

const Instruction& Timeline::at(int instruction) const {
  const Section& s = section_of(instruction);
  return s.program->instructions[instruction - s.first];
}

double Timeline::x(int instruction) const {
  const Section& s = section_of(instruction);
  return s.begin + (s.end - s.begin) * (instruction - s.first) / s.instructions();
}

double Timeline::right(int instruction) const {
  const Section& s = section_of(instruction);
  return s.begin + (s.end - s.begin) * (instruction + 1 - s.first) / s.instructions();
}

int Timeline::gradients_end() const {
  for (const Section& s : sections_)
    if (!holds_gradients(s)) return s.first;
  return instructions();
}

Timeline::Words Timeline::words(int instruction) const {
  const Instruction& i = at(instruction);
  const Op& op = graph_.op(i.op);
  const std::string name = op_row(i.kind).name;
  // All sums of squares have the same output, and stores have none. Therefore they are named after their
  // inputs.
  const bool is_sum = i.kind == OpKind::square_sum || i.kind == OpKind::store;
  const std::string others =
      i.ops == 1 ? "" : " and " + std::to_string(i.ops - 1) + (i.ops == 2 ? " other" : " others");
  for (int t : is_sum ? op.inputs : op.outputs)
    if (t >= 0) return {name + (is_sum ? " of " : " → "), graph_.at(t).name + others};
  return {name, ""};
}

std::string Timeline::label(int instruction) const {
  const Words w = words(instruction);
  return w.op + w.tensor;
}

int Timeline::block(int segment) const {
  if (segment < 0 || graph_.segments[segment].kind != SegmentKind::block) return -1;
  return graph_.segments[segment].block;
}

std::string Timeline::place(int instruction) const {
  return graph_.segment_name(graph_.op(at(instruction).op).segment);
}

std::string Timeline::moment(int instruction) const {
  const std::string where = place(instruction);
  return label(instruction) + " (" + (where.empty() ? "" : where + ", ") + phase_name(at(instruction).phase) +
         ")";
}

const char* Timeline::phase_name(Phase phase) {
  constexpr const char* names[] = {"forward", "recompute", "backward", "update", "generate"};
  return names[static_cast<size_t>(phase)];
}

std::vector<Column> Timeline::live(int at_most) const {
  std::vector<Column> columns;
  for (const Section& s : sections_) {
    const int n = s.instructions();
    std::vector<std::array<__int128, class_count>> change(static_cast<size_t>(n) + 1);
    for (const Buffer& b : s.program->buffers) {
      change[static_cast<size_t>(b.first)][static_cast<size_t>(b.owner)] += b.bytes;
      change[static_cast<size_t>(b.last) + 1][static_cast<size_t>(b.owner)] -= b.bytes;
    }
    std::array<__int128, class_count> now{};
    for (const Buffer& b : arena_.persistent)
      if (b.owner != MemoryClass::gradients || holds_gradients(s))
        now[static_cast<size_t>(b.owner)] += b.bytes;
    const int step = std::max(1, (n + at_most - 1) / at_most);
    for (int i = 0; i < n; ++i) {
      Column c{s.first + i, s.first + i + 1, s.first + i, {}};
      for (size_t k = 0; k < class_count; ++k)
        c.live[k] = static_cast<uint64_t>(std::min<__int128>(now[k] += change[i][k], size_limit));
      if (i % step == 0) {
        columns.push_back(c);
        continue;
      }
      Column& last = columns.back();
      if (c.total() > last.total()) {
        last.live = c.live;
        last.instruction = c.instruction;
      }
      last.end = c.end;
    }
  }
  return columns;
}

}  // namespace stw::picture
