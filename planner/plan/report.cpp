// The plan as a table for users.
#include "planner/base/figures.h"
#include "planner/graph/update.h"
#include "planner/plan/plan_file.h"

namespace stw {

namespace {

std::string padded(const std::string& text, size_t width, bool right) {
  const std::string space(width > text.size() ? width - text.size() : 0, ' ');
  return right ? space + text : text + space;
}

std::string bar(uint64_t part, uint64_t whole) {
  const int eighths =
      whole == 0 ? 0 : static_cast<int>(static_cast<double>(part) / static_cast<double>(whole) * 240 + 0.5);
  std::string s;
  for (int i = 0; i < eighths / 8; ++i) s += "█";
  constexpr const char* rest[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  return s + rest[eighths % 8];
}

void row(std::string& out, const char* name, uint64_t bytes, uint64_t whole) {
  const double share = whole == 0 ? 0 : 100.0 * static_cast<double>(bytes) / static_cast<double>(whole);
  out += "  " + padded(name, 18, false) + " " + padded(human_bytes(bytes), 12, true) + " " +
         padded(fixed_point(share, 1), 5, true) + " %  " + bar(bytes, whole) + "\n";
}

std::string recomputed_text(const Graph& graph, const Decisions& decisions) {
  std::string text;
  for (const RecomputedBlocks& run : recomputed_blocks(graph, decisions))
    text += "  recompute    blocks " + std::to_string(run.first) + "-" + std::to_string(run.last) + ": " +
            joined(run.tensors) + "\n";
  return text.empty() ? "  recompute    nothing\n" : text;
}

std::string kernels_text(const Numerics& n) {
  const std::string attention = n.attention == Attention::cudnn ? ", cuDNN's attention" : "";
  switch (n.kernels) {
    case Kernels::tensor: return ", tensor cores" + attention;
    case Kernels::wgmma: return ", tensor cores (wgmma)" + attention;
    case Kernels::cublaslt:
    case Kernels::cublaslt_wgmma: {
      const std::string library = uses_wgmma(n.kernels) ? ", cuBLASLt and wgmma" : ", cuBLASLt";
      return library + (n.exact ? "" : " (fast: the micro-batch changes bits)") + attention;
    }
    default: return attention;
  }
}

// "bf16 (master split8), adamw with 8-bit states, gradients in bf16, tensor cores"
std::string numerics_text(const Numerics& n) {
  std::string text = name_of(n.precision);
  if (n.master != Master::exact) text += std::string(" (master ") + master_name(n) + ")";
  text += std::string(", ") + name_of(n.optimizer) + " with " + std::to_string(n.state_bits) + "-bit states";
  if (n.gradients != Gradients::fp32) text += std::string(", gradients in ") + gradients_name(n);
  if (n.fused_update) text += ", fused update";
  return text + kernels_text(n);
}

std::string quantized_text(const Graph& graph) {
  std::string text;
  for (const Quantize codes : {Quantize::nf4, Quantize::int8}) {
    uint64_t elements = 0, bytes = 0;
    for (size_t i = 0; i < graph.tensors.size(); ++i) {
      const Tensor& t = graph.tensors[i];
      if (!graph.owns_bytes(static_cast<int>(i)) ||
          t.format != (codes == Quantize::nf4 ? Format::nf4 : Format::int8))
        continue;
      elements = size_add(elements, t.shape.elements());
      bytes = size_add(bytes, t.bytes(1));
    }
    if (elements > 0)
      text += std::string(text.empty() ? "" : "; ") + human_count(elements) + " of the parameters are " +
              name_of(codes) + ": " + human_bytes(bytes);
  }
  return text.empty() ? "" : "  quantized    " + text + "\n";
}

std::string tiled_text(const Graph& graph, const Decisions& decisions) {
  std::string text;
  for (const TiledBlocks& run : tiled_blocks(graph, decisions))
    text += "  tiles        blocks " + std::to_string(run.first) + "-" + std::to_string(run.last) +
            ": feed-forward in tiles of " + std::to_string(run.rows) + " tokens\n";
  return text;
}

std::string grouped_text(const Graph& graph, const Plan& plan) {
  std::string text;
  for (const ParameterGroup& g : plan.numerics.groups) {
    std::vector<std::string> settings;
    if (g.frozen) settings.push_back(*g.frozen ? "frozen" : "trained");
    if (g.rate) settings.push_back("learning rate × " + shortest(*g.rate));
    if (g.decay) settings.push_back("weight decay " + shortest(*g.decay));
    if (g.state_bits) settings.push_back(std::to_string(*g.state_bits) + "-bit states");
    text += "  group        " + g.pattern + ": " + joined(settings) + "\n";
  }
  if (plan.trainable < plan.parameters)
    text += "  trained      " + human_count(plan.trainable) +
            " of the parameters; freezing the others saves " +
            human_bytes(frozen_savings(graph, plan.numerics)) + " of gradients, masters and states\n";
  return text;
}

std::string kept_rows_text(const Graph& graph) {
  if (!graph.kept.exist()) return "";
  return "  token table  its gradient is " +
         std::string(graph.kept.formed < 0 ? "summed after the last micro-step"
                                           : "formed in slices at the update") +
         ", from the gradients of all embedded tokens: " + human_bytes(graph.at(graph.kept.rows).bytes(1)) +
         "\n";
}

std::string offloaded_text(const Graph& graph, const Plan& plan) {
  std::string text;
  for (const OffloadedTensors& o : offloaded_tensors(graph, plan.decisions)) {
    text += "  offload      " + std::string(offloaded_titles[static_cast<int>(o.what)]) + " of";
    if (o.last >= 0) text += " blocks 0-" + std::to_string(o.last);
    if (o.others) text += o.last >= 0 ? " and everything else" : " everything except the blocks";
    text += ": " + human_bytes(o.bytes) + " in host memory\n";
  }
  if (plan.copied_bytes > 0)
    text += "  copies       " + human_bytes(plan.copied_bytes) + " a step between host and device\n";
  return text;
}

// Whole tokens, or three digits.
std::string rate_text(double per_second) {
  return (per_second >= 100 ? grouped(static_cast<uint64_t>(per_second + 0.5))
                            : fixed_point(per_second, per_second >= 10 ? 1 : 2)) +
         " tokens/s";
}

// "9,500 tokens/s"; if no device has confirmed it, "9,500 to 11,000 tokens/s estimated".
std::string speed_text(const Plan& plan, double per_second) {
  const auto whole = [](double tokens) { return grouped(static_cast<uint64_t>(tokens + 0.5)); };
  const std::string low = whole(per_second);
  if (plan.ceiling_picoseconds == 0) return low + " tokens/s";
  const std::string high = whole(per_second * static_cast<double>(plan.step_picoseconds) /
                                 static_cast<double>(plan.ceiling_picoseconds));
  return (high == low ? low : low + " to " + high) + " tokens/s estimated";
}

}  // namespace

std::string relaxation_text(const Relaxation& x, uint64_t budget) {
  if (!x.fits)
    return x.flags + ": not enough, needs " + human_bytes(x.peak_bytes) + ", " +
           human_bytes(x.peak_bytes > budget ? x.peak_bytes - budget : 0) + " more than the budget";
  std::string text = x.flags + ": " + rate_text(x.tokens_per_second) + ", peak " + human_bytes(x.peak_bytes) +
                     "; " + (x.changes_numerics ? x.effect : "the same result");
  if (x.least_host_bytes > 0)
    text += "; takes " + human_bytes(x.host_bytes) + ", " +
            std::to_string(ceil_div(x.least_host_bytes, uint64_t{1} << 20)) + "MiB are enough";
  return text;
}

std::string plan_report(const Graph& graph, const Plan& plan) {
  const Request& r = plan.request;
  const double step = static_cast<double>(plan.step_picoseconds) * 1e-12;
  const double tokens = static_cast<double>(r.global_batch) * static_cast<double>(r.sequence);
  std::string s = plan.architecture + ", " + human_count(plan.parameters) + " parameters, " +
                  std::to_string(plan.layers) + " layers, on " + r.device;
  if (r.calibrated && !r.calibrated->is_calibrated()) {
    s += " (figures of a file)";
  } else if (r.calibrated) {
    const Calibration& c = r.calibrated->calibration;
    s += r.calibrated->cuda ? std::string(" (calibrated in ")
                            : " (calibrated with " + std::to_string(c.threads) +
                                  (c.threads == 1 ? " thread, " : " threads, ");
    s += std::string(name_of(c.precision)) + ")";
  }
  s += "\n";
  s += "  step         " + std::to_string(r.global_batch) + " samples of " + std::to_string(r.sequence) +
       " tokens, " + numerics_text(plan.numerics);
  s += plan.states_reason.empty() ? "\n" : " (" + plan.states_reason + ")\n";
  if (!plan.fits) {
    s += "  does not fit: the budget is " + human_bytes(plan.bytes.budget) +
         ", the smallest budget that works is " + human_bytes(plan.minimum_bytes) + " (" +
         grouped(plan.minimum_bytes) + " bytes)\n";
    for (const Relaxation& x : plan.relaxations)
      s += "  instead      " + relaxation_text(x, plan.bytes.budget) + "\n";
    if (!plan.shortage.empty()) s += "  shortage     " + plan.shortage + "\n";
    s += "  the smallest plan:\n";
  }
  s += "  micro-batch  " + std::to_string(plan.decisions.micro_batch) + " × " +
       std::to_string(plan.accumulation_steps);
  if (plan.last_micro_batch != plan.decisions.micro_batch)
    s += ", the last one " + std::to_string(plan.last_micro_batch);
  s += "; loss in " + std::to_string(plan.decisions.loss_chunks) +
       (plan.decisions.loss_chunks == 1 ? " chunk\n" : " chunks\n");
  if (graph.preference != Preference::none)
    s += std::string("  preference   ") + name_of(graph.preference) +
         ": pairs of documents; logits are computed " +
         (plan.decisions.loss_chunks == 1 ? "once\n" : "twice\n");
  s += grouped_text(graph, plan) + quantized_text(graph) + recomputed_text(graph, plan.decisions) +
       tiled_text(graph, plan.decisions) + kept_rows_text(graph) + offloaded_text(graph, plan);
  const double total = static_cast<double>(plan.step_picoseconds);
  s += "  predicted    " + human_duration(step) + " a step, " + speed_text(plan, tokens / step) + ", " +
       fixed_point(100 * static_cast<double>(plan.recompute_picoseconds) / total, 1) + " % of it recompute; ";
  s += plan.step_picoseconds == plan.unlimited_picoseconds
           ? "more memory would not help\n"
           : "one GiB more saves " +
                 fixed_point(100 * (1 - static_cast<double>(plan.next_gib_picoseconds) / total), 1) +
                 " % of the time, any amount of memory saves " +
                 fixed_point(100 * (1 - static_cast<double>(plan.unlimited_picoseconds) / total), 1) + " %\n";
  if (plan.fits)
    s += plan.step_picoseconds == plan.bound_picoseconds
             ? "  proven       no plan with these numerics is faster within this budget\n"
             : "  bound        within this budget no plan is more than " +
                   fixed_point(100 * (total / static_cast<double>(plan.bound_picoseconds) - 1), 2) +
                   " % faster\n";
  s += "\n  memory at the peak\n";
  for (size_t c = 0; c < class_count; ++c) row(s, class_titles[c], plan.bytes.of[c], plan.bytes.peak);
  row(s, "padding", plan.bytes.padding, plan.bytes.peak);
  if (plan.bytes.reserve > 0) row(s, "reserve", plan.bytes.reserve, plan.bytes.peak);
  s += "  " + std::string(40, '-') + "\n";
  const std::string host =
      plan.bytes.host > 0 ? ", and " + human_bytes(plan.bytes.host) + " of host memory" : "";
  s += "  " + padded("peak", 18, false) + " " + padded(human_bytes(plan.bytes.peak), 12, true) + "  of " +
       human_bytes(plan.bytes.budget) + (plan.fits ? "" : ", too small") + host + "\n";
  return s;
}

}  // namespace stw
