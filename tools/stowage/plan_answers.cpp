#include "plan_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "files.h"
#include "json_reader.h"
#include "units.h"

namespace command {
namespace {

constexpr size_t frontier_budgets = 24;

std::string bar(double share) {
  static constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int count = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * 30 * 8));
  std::string text;
  for (int i = 0; i < count / 8; ++i) text += "█";
  return text + eighths[count % 8];
}

std::vector<stw_frontier_point> frontier_of(const stw_plan* plan) {
  std::vector<stw_frontier_point> points(frontier_budgets);
  points[0].struct_size = sizeof points[0];
  size_t count = 0;
  call([&](stw_error* error) { return stw_plan_frontier(plan, points.data(), points.size(), &count, error); });
  points.resize(count);
  return points;
}

std::string change(double first, double second) {
  if (first == second) return "";
  if (first == 0) return "new";
  return fmt::format("{:+.1f} %", 100 * (second / first - 1));
}

// "7 of 1024 rows": how many blocks run their feed-forward part in tiles, and in which. Older plans do not say.
std::optional<std::string> tiled_blocks(const std::string& plan, const std::string& path) {
  constexpr std::string_view name = "\"tiles\":";
  const size_t found = plan.find(name), begin = found + name.size();
  if (found == std::string::npos) return std::nullopt;
  JsonReader reader(std::string_view(plan).substr(begin), path + ": damaged", begin);
  const uint64_t layers = json_whole(plan, "model", "layers").value_or(0);
  std::map<uint64_t, uint64_t> blocks;   // by the rows of their tiles
  uint64_t next = 0;                     // the first block that no entry before names
  reader.list('[', ']', [&] {
    uint64_t first = 1, last = 0, rows = 0;
    reader.object([&](const std::string& key) {
      if (key == "rows") {
        rows = reader.whole();
      } else if (key == "blocks") {
        reader.expect('[');
        first = reader.whole();
        reader.expect(',');
        last = reader.whole();
        reader.expect(']');
      } else {
        reader.fail(fmt::format("\"{}\" is no field of tiles", key));
      }
    });
    if (rows < 1) reader.fail("tiles have a row or more");
    if (first < next || last < first || last >= layers)
      reader.fail(fmt::format("it tiles blocks that are not among the model's {}, or that it has named before", layers));
    next = last + 1;
    blocks[rows] += last - first + 1;
  });
  std::string text;
  for (const auto& [rows, count] : blocks) text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", count, rows);
  return text.empty() ? "none" : text + " rows";
}

// Half bytes that a parameter takes at least, in one memory or the other: two bytes in every numerics, or what its codes take, and its
// gradient where that is on the device, and kept.
uint64_t least_half_bytes(const stw_plan_options& options, bool has_adapters) {
  if (has_adapters) {
    if (options.quantize == STW_QUANTIZE_NF4) return 1;
    return options.quantize == STW_QUANTIZE_INT8 || options.quantize_embeddings == STW_QUANTIZE_INT8 ? 2 : 4;
  }
  if (options.group_count || options.host_bytes || options.fused_update) return 4;
  return options.gradients == STW_GRADIENTS_BF16 ? 8 : 12;
}

}  // namespace

void print_frontier(const Plan& plan, bool json) {
  const std::vector<stw_frontier_point> points = frontier_of(plan.get());
  if (json) {
    fmt::print("{{\"frontier\":[");
    for (size_t i = 0; i < points.size(); ++i)
      fmt::print("{}{{\"peak_bytes\":{},\"step_seconds\":{},\"tokens_per_second\":{},\"micro_batch\":{},\"knee\":{}}}", i ? "," : "",
                 points[i].peak, points[i].step_seconds, points[i].tokens_per_second, points[i].micro_batch, points[i].is_knee != 0);
    fmt::print("]}}\n");
    return;
  }
  const stw_plan_info info = query(plan);
  fmt::print("\n  what other budgets would get{:>16}{:>13}\n", "tokens/s", "micro-batch");
  for (const stw_frontier_point& p : points)
    fmt::print("  {:>12} {} {:>27.0f}{:>13}  {}{}\n", human_bytes(p.peak), p.peak == info.peak && info.fits ? "◀" : " ", p.tokens_per_second,
               p.micro_batch, bar(p.tokens_per_second / points.back().tokens_per_second), p.is_knee ? " knee" : "");
}

void print_longest_sequence(const Model& model, const stw_plan_options& options, bool json) {
  uint64_t sequence = 0;
  const stw_status status = call(
      [&](stw_error* error) { return stw_plan_longest_sequence(model.get(), &options, &sequence, error); }, STW_OVER_BUDGET);
  if (json) fmt::print("{{\"longest_sequence\":{},\"positions\":{}}}\n", sequence, query(model).positions);
  else if (status == STW_OK) fmt::print("longest sequence that fits: {} of the model's {} positions\n", grouped(sequence), grouped(query(model).positions));
  if (status == STW_OVER_BUDGET) throw Failure(exit_does_not_fit, "not even a sequence of one token fits");
}

void print_largest_model(const ModelFlags& adapters, stw_plan_options options, bool sequence_given, bool json) {
  struct Preset { const char* name; Model model; stw_model_info info; };
  std::vector<Preset> presets;
  std::string refusal;   // of the last preset that the groups or targets do not name anything of
  size_t refused = 0, tried = 0;
  for (size_t index = 0; const char* name = stw_model_preset_at(index); ++index) {
    ModelFlags flags = adapters;
    flags.source = name;
    flags.weights = flags.adapter = "";
    try {
      Model model = open_model(flags);
      const stw_model_info info = query(model);
      presets.push_back({name, std::move(model), info});
    } catch (const Failure& failure) {
      if (flags.adapter_targets.empty()) throw;
      refusal = failure.what();
      ++tried, ++refused;
    }
  }
  std::stable_sort(presets.begin(), presets.end(), [](const Preset& a, const Preset& b) { return a.info.parameters > b.info.parameters; });
  const uint64_t sequence = options.sequence;
  for (const Preset& preset : presets) {
    if (sequence_given && sequence > preset.info.positions) continue;
    const uint64_t least = least_half_bytes(options, preset.info.adapter_rank > 0);
    if (options.memory_bytes && preset.info.parameters > options.memory_bytes / least * 2 + options.host_bytes / least * 2) continue;
    options.sequence = std::min(sequence, preset.info.positions);
    stw_plan* made = nullptr;
    auto error = sized<stw_error>();
    const stw_status status = stw_plan_create(&made, preset.model.get(), &options, &error);
    const Plan plan(made);
    tried += 1;
    if (status == STW_OVER_BUDGET) continue;
    // A pattern of other models, heads that a library does not take.
    if ((status == STW_BAD_ARGUMENT && options.group_count) || status == STW_UNSUPPORTED_SHAPE) {
      refusal = error.message;
      refused += 1;
      continue;
    }
    if (status != STW_OK) throw Failure(exit_failed, error.message);
    const stw_plan_info info = query(plan);
    if (json)
      fmt::print("{{\"largest_model\":{},\"parameters\":{},\"sequence\":{},\"peak_bytes\":{},\"tokens_per_second\":{}}}\n",
                 json_quoted(preset.name), preset.info.parameters, options.sequence, info.peak, info.tokens_per_second);
    else
      fmt::print("largest preset that fits: {}, {} parameters, with sequences of {}: peak {}, {:.0f} tokens/s\n", preset.name,
                 human_count(static_cast<double>(preset.info.parameters)), grouped(options.sequence), human_bytes(info.peak),
                 info.tokens_per_second);
    return;
  }
  if (refused > 0 && refused == tried) throw Failure(exit_failed, refusal);
  if (json) fmt::print("{{\"largest_model\":null}}\n");
  throw Failure(exit_does_not_fit, "no preset fits");
}

void compare_plans(const std::string& first, const std::string& second) {
  const std::string paths[2] = {first, second};
  std::string texts[2];
  for (int i = 0; i < 2; ++i) {
    texts[i] = read_text(paths[i]);
    if (json_string(texts[i], "", "format") != "stowage-plan" || !json_number(texts[i], "layout", "gap") ||
        !json_number(texts[i], "bytes", "peak"))
      throw Failure(exit_failed, fmt::format("{}: expected a plan that `stowage plan --json` wrote", paths[i]));
  }
  const std::optional<std::string> tiled[2] = {tiled_blocks(texts[0], first), tiled_blocks(texts[1], second)};
  fmt::print("{:<24}{:>24}{:>24}\n", "", first, second);
  const auto say = [](const char* name, const std::optional<std::string>& a, const std::optional<std::string>& b) {
    fmt::print("{:<24}{:>24}{:>24}  {}\n", name, a.value_or("-"), b.value_or("-"), a == b ? "" : "differs");
  };
  const auto words = [&](const char* name, const char* scope, const char* key) {
    say(name, json_string(texts[0], scope, key), json_string(texts[1], scope, key));
  };
  const auto flags = [&](const char* name, const char* scope, const char* key) {
    const auto word = [](std::optional<bool> x) { return x ? std::optional<std::string>(*x ? "yes" : "no") : std::nullopt; };
    say(name, word(json_bool(texts[0], scope, key)), word(json_bool(texts[1], scope, key)));
  };
  const auto lists = [&](const char* name, const char* key) {
    const auto a = json_list(texts[0], "numerics", key), b = json_list(texts[1], "numerics", key);
    const auto many = [](const auto& x) { return !x ? "-" : x->empty() ? "none" : fmt::format("{}", x->size()); };
    fmt::print("{:<24}{:>24}{:>24}  {}\n", name, many(a), many(b), a == b ? "" : "differs");
  };
  const auto numbers = [&](const char* name, const char* scope, const char* key, auto show) {
    const auto a = json_number(texts[0], scope, key), b = json_number(texts[1], scope, key);
    fmt::print("{:<24}{:>24}{:>24}  {}\n", name, a ? show(*a) : "-", b ? show(*b) : "-", a && b ? change(*a, *b) : "");
  };
  const auto whole = [](double x) { return std::abs(x) < 1e15 ? fmt::format("{:.0f}", x) : fmt::format("{:.3g}", x); };
  const auto bytes = [](double x) { return x >= 0 && x < 1e19 ? human_bytes(static_cast<uint64_t>(x)) : fmt::format("{:.3g}", x); };
  const auto seconds = [](double x) { return x < 1 ? fmt::format("{:.2f} ms", x * 1000) : fmt::format("{:.3f} s", x); };
  const auto percent = [](double x) { return fmt::format("{:.1f} %", x * 100); };
  for (int i = 0; i < 2; ++i)
    if (!json_bool(texts[i], "", "fits").value_or(true)) fmt::print("{} does not fit its budget: its figures are those of the smallest plan\n", paths[i]);
  words("model", "model", "architecture");
  numbers("parameters", "model", "parameters", whole);
  words("device", "device", "name");
  words("precision", "numerics", "precision");
  for (const char* name : {"optimizer", "master", "gradients", "kernels", "attention", "preference", "quantize"}) words(name, "numerics", name);
  words("quantize embeddings", "numerics", "quantize_embeddings");
  numbers("state bits", "numerics", "state_bits", whole);
  flags("fused update", "numerics", "fused_update");
  flags("exact", "numerics", "exact");
  lists("groups", "groups");
  lists("optional inputs", "inputs");
  numbers("budget", "bytes", "budget", bytes);
  numbers("global batch", "request", "global_batch", whole);
  numbers("sequence", "request", "sequence", whole);
  numbers("threads", "request", "threads", whole);
  // The plan's own stand behind the numerics, those of the request before.
  numbers("micro-batch", "numerics", "micro_batch", whole);
  numbers("accumulation steps", "numerics", "accumulation_steps", whole);
  numbers("loss chunks", "numerics", "loss_chunks", whole);
  lists("runs of recompute", "recompute");
  say("blocks in tiles", tiled[0], tiled[1]);
  lists("kinds of offload", "offload");
  numbers("step", "predicted", "step_seconds", seconds);
  numbers("tokens/s", "predicted", "tokens_per_second", whole);
  numbers("of it recompute", "predicted", "recompute_fraction", percent);
  numbers("host memory", "bytes", "host", bytes);
  for (const char* name : {"parameters", "gradients", "optimizer", "saved_activations", "transient", "workspace", "inputs", "padding",
                           "arena", "reserve", "peak"})
    numbers(name, "bytes", name, bytes);
}

}  // namespace command
