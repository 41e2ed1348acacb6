// The plan as a table for people.
#include <algorithm>
#include <charconv>

#include "planner/plan_file.h"

namespace stw {

namespace {

// With this many decimals, whatever the host's locale.
std::string fixed(double value, int decimals) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, decimals).ptr};
}

std::string padded(const std::string& text, size_t width, bool right) {
  const std::string space(width > text.size() ? width - text.size() : 0, ' ');
  return right ? space + text : text + space;
}

std::string human(uint64_t bytes) {
  const double b = static_cast<double>(bytes);
  if (bytes >= uint64_t{1} << 30) return fixed(b / (1u << 30), 2) + " GiB";
  if (bytes >= 1u << 20) return fixed(b / (1u << 20), 2) + " MiB";
  if (bytes >= 1u << 10) return fixed(b / 1024, 1) + " KiB";
  return std::to_string(bytes) + " B";
}

std::string count(uint64_t n) {
  const double d = static_cast<double>(n);
  if (n >= 1000000000) return fixed(d / 1e9, 2) + " B";
  if (n >= 1000000) return fixed(d / 1e6, 2) + " M";
  return std::to_string(n);
}

std::string duration(double seconds) {
  return seconds >= 1 ? fixed(seconds, 2) + " s" : fixed(seconds * 1000, 2) + " ms";
}

std::string bar(uint64_t part, uint64_t whole) {
  const int eighths = whole == 0 ? 0 : static_cast<int>(static_cast<double>(part) / static_cast<double>(whole) * 240 + 0.5);
  std::string s;
  for (int i = 0; i < eighths / 8; ++i) s += "█";
  constexpr const char* rest[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  return s + rest[eighths % 8];
}

void row(std::string& out, const char* name, uint64_t bytes, uint64_t whole) {
  const double share = whole == 0 ? 0 : 100.0 * static_cast<double>(bytes) / static_cast<double>(whole);
  out += "  " + padded(name, 18, false) + " " + padded(human(bytes), 12, true) + " " + padded(fixed(share, 1), 5, true) +
         " %  " + bar(bytes, whole) + "\n";
}

std::string what_is_recomputed(const Graph& graph, const Decisions& decisions) {
  // Blocks keep all, some or none; name the sets in the order of the blocks.
  std::string text;
  for (size_t s = 0; s < graph.segments.size();) {
    size_t end = s + 1;
    while (end < graph.segments.size() && graph.segments[end].kind == graph.segments[s].kind &&
           decisions.saved[end] == decisions.saved[s])
      ++end;
    const Segment& first = graph.segments[s];
    std::string names;
    if (first.kind == SegmentKind::block)
      for (size_t bit = 0; bit < first.saveable.size(); ++bit)
        if (!(decisions.saved[s] >> bit & 1))
          names += (names.empty() ? "" : ", ") + graph.at(graph.op(first.saveable[bit]).outputs[0]).name;
    if (!names.empty())
      text += "  recompute    blocks " + std::to_string(first.block) + "-" + std::to_string(graph.segments[end - 1].block) +
              ": " + names + "\n";
    s = end;
  }
  return text.empty() ? "  recompute    nothing\n" : text;
}

}  // namespace

std::string plan_report(const Graph& graph, const Plan& plan) {
  const Request& r = plan.request;
  const double step = static_cast<double>(plan.step_picoseconds) * 1e-12;
  const double tokens = static_cast<double>(r.global_batch) * static_cast<double>(r.sequence);
  std::string s = plan.architecture + ", " + count(plan.parameters) + " parameters, " + std::to_string(plan.layers) +
                  " layers, on " + r.device + "\n";
  s += "  step         " + std::to_string(r.global_batch) + " samples of " + std::to_string(r.sequence) + " tokens, " +
       name_of(plan.numerics.precision) + ", " + name_of(plan.numerics.optimizer) + " with " +
       std::to_string(plan.numerics.state_bits) + "-bit states";
  s += plan.states_reason.empty() ? "\n" : " (" + plan.states_reason + ")\n";
  if (!plan.fits) {
    s += "  does not fit: the budget is " + human(plan.bytes.budget) + ", the smallest that works is " +
         human(plan.minimum_bytes) + " (" + std::to_string(plan.minimum_bytes) + " bytes)\n";
    for (const Relaxation& x : plan.relaxations)
      s += "  instead      " + x.change + ": saves " + human(x.saves_bytes) +
           ", step time " + (x.costs_fraction < 0 ? "" : "+") + fixed(x.costs_fraction * 100, 1) + " %" + (x.changes_numerics ? ", changes the numerics" : "") + "\n";
    s += "  the smallest plan:\n";
  }
  s += "  micro-batch  " + std::to_string(plan.decisions.micro_batch) + " × " + std::to_string(plan.accumulation_steps);
  if (plan.last_micro_batch != plan.decisions.micro_batch) s += ", the last one " + std::to_string(plan.last_micro_batch);
  s += "; loss in " + std::to_string(plan.decisions.loss_chunks) + (plan.decisions.loss_chunks == 1 ? " chunk\n" : " chunks\n");
  s += what_is_recomputed(graph, plan.decisions);
  const double total = static_cast<double>(plan.step_picoseconds);
  s += "  predicted    " + duration(step) + " a step, " + fixed(tokens / step, 0) + " tokens/s, " +
       fixed(100 * static_cast<double>(plan.recompute_picoseconds) / total, 1) + " % of it recompute; ";
  s += plan.step_picoseconds == plan.unlimited_picoseconds
           ? "more memory would not help\n"
           : "one GiB more saves " + fixed(100 * (1 - static_cast<double>(plan.next_gib_picoseconds) / total), 1) +
                 " % of the time, any amount " + fixed(100 * (1 - static_cast<double>(plan.unlimited_picoseconds) / total), 1) + " %\n";
  if (plan.fits)
    s += plan.step_picoseconds == plan.bound_picoseconds
             ? "  proven       no plan of these numerics is faster within this budget\n"
             : "  bound        within this budget no plan is more than " + fixed(100 * (total / static_cast<double>(plan.bound_picoseconds) - 1), 2) + " % faster\n";
  s += "\n  memory at the peak\n";
  constexpr const char* names[class_count] = {"parameters", "gradients", "optimizer", "saved activations", "transient", "workspace", "inputs"};
  for (int c = 0; c < class_count; ++c) row(s, names[c], plan.bytes.of[static_cast<size_t>(c)], plan.bytes.peak);
  row(s, "padding", plan.bytes.padding, plan.bytes.peak);
  if (plan.bytes.reserve > 0) row(s, "reserve", plan.bytes.reserve, plan.bytes.peak);
  s += "  " + std::string(40, '-') + "\n";
  s += "  " + padded("peak", 18, false) + " " + padded(human(plan.bytes.peak), 12, true) + "  of " + human(plan.bytes.budget) + (plan.fits ? "" : ", too small") + "\n";
  return s;
}

}  // namespace stw
