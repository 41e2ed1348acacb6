// The plan as a table for people.
#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

#include "planner/plan_file.h"

namespace stw {

namespace {

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

std::string human(uint64_t bytes) {
  const double b = static_cast<double>(bytes);
  if (bytes >= uint64_t{1} << 30) return format("%.2f GiB", b / (1u << 30));
  if (bytes >= 1u << 20) return format("%.2f MiB", b / (1u << 20));
  if (bytes >= 1u << 10) return format("%.1f KiB", b / 1024);
  return format("%" PRIu64 " B", bytes);
}

std::string count(uint64_t n) {
  const double d = static_cast<double>(n);
  if (n >= 1000000000) return format("%.2f B", d / 1e9);
  if (n >= 1000000) return format("%.2f M", d / 1e6);
  return format("%" PRIu64, n);
}

std::string duration(double seconds) {
  if (seconds >= 1) return format("%.2f s", seconds);
  return format("%.2f ms", seconds * 1000);
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
  out += format("  %-18s %12s %5.1f %%  ", name, human(bytes).c_str(), share) + bar(bytes, whole) + "\n";
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
      text += format("  recompute    blocks %d-%d: ", first.block, graph.segments[end - 1].block) + names + "\n";
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
  s += format("  step         %" PRId64 " samples of %" PRId64 " tokens, %s, %s with %d-bit states", r.global_batch,
              r.sequence, name_of(plan.numerics.precision), name_of(plan.numerics.optimizer), plan.numerics.state_bits);
  s += plan.states_reason.empty() ? "\n" : " (" + plan.states_reason + ")\n";
  if (!plan.fits) {
    s += "  does not fit: the budget is " + human(plan.bytes.budget) + ", the smallest that works is " +
         human(plan.minimum_bytes) + format(" (%" PRIu64 " bytes)\n", plan.minimum_bytes);
    for (const Relaxation& x : plan.relaxations)
      s += "  instead      " + x.change + ": saves " + human(x.saves_bytes) +
           format(", step time %+.1f %%", x.costs_fraction * 100) + (x.changes_numerics ? ", changes the numerics" : "") + "\n";
    s += "  the smallest plan:\n";
  }
  s += format("  micro-batch  %" PRId64 " × %" PRId64, plan.decisions.micro_batch, plan.accumulation_steps);
  if (plan.last_micro_batch != plan.decisions.micro_batch) s += format(", the last one %" PRId64, plan.last_micro_batch);
  s += format("; loss in %" PRId64 " chunk%s\n", plan.decisions.loss_chunks, plan.decisions.loss_chunks == 1 ? "" : "s");
  s += what_is_recomputed(graph, plan.decisions);
  s += "  predicted    " + duration(step) + format(" a step, %.0f tokens/s", tokens / step);
  s += format(", %.1f %% of it recompute; %s\n", 100 * static_cast<double>(plan.recompute_picoseconds) / static_cast<double>(plan.step_picoseconds),
              plan.step_picoseconds == plan.bound_picoseconds
                  ? "no plan is faster in this model of the device"
                  : format("the bound without memory limits is %.1f %% faster",
                           100 * (1 - static_cast<double>(plan.bound_picoseconds) / static_cast<double>(plan.step_picoseconds))).c_str());
  s += "\n  memory at the peak\n";
  constexpr const char* names[class_count] = {"parameters", "gradients", "optimizer", "saved activations", "transient", "workspace", "inputs"};
  for (int c = 0; c < class_count; ++c) row(s, names[c], plan.bytes.of[static_cast<size_t>(c)], plan.bytes.peak);
  row(s, "padding", plan.bytes.padding, plan.bytes.peak);
  if (plan.bytes.reserve > 0) row(s, "reserve", plan.bytes.reserve, plan.bytes.peak);
  s += "  " + std::string(40, '-') + "\n";
  s += format("  %-18s %12s", "peak", human(plan.bytes.peak).c_str());
  s += "  of " + human(plan.bytes.budget) + (plan.fits ? "" : ", too small") + "\n";
  return s;
}

}  // namespace stw
