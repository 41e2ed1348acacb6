#include "plans/plan_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/failure.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "base/json_reader.h"
#include "base/units.h"

namespace command {
namespace {

std::string change(double first, double second) {
  if (first == second) return "";
  if (first == 0) return "new";
  return fmt::format("{:+.1f} %", 100 * (second / first - 1));
}

// "7 of 1024 rows": the number of blocks whose feed-forward part runs in tiles, and the rows of a tile. Empty
// for older plans, which do not record it.
std::optional<std::string> tiled_blocks(const std::string& plan, const std::string& path) {
  constexpr std::string_view name = "\"tiles\":";
  const size_t found = plan.find(name), begin = found + name.size();
  if (found == std::string::npos) return std::nullopt;
  JsonReader reader(std::string_view(plan).substr(begin), path + ": damaged", begin);
  const uint64_t layers = json_integer(plan, "model", "layers").value_or(0);
  std::map<uint64_t, uint64_t> blocks;  // number of blocks by rows of a tile
  uint64_t next = 0;                    // first block after those of earlier entries
  reader.list('[', ']', [&] {
    uint64_t first = 1, last = 0, rows = 0;
    reader.object([&](const std::string& key) {
      if (key == "rows") {
        rows = reader.integer();
      } else if (key == "blocks") {
        reader.expect('[');
        first = reader.integer();
        reader.expect(',');
        last = reader.integer();
        reader.expect(']');
      } else {
        reader.fail(fmt::format("\"{}\" is not a field of tiles", key));
      }
    });
    if (rows < 1) reader.fail("tiles have a row or more");
    if (first < next || last < first || last >= layers)
      reader.fail(fmt::format(
          "its tiles name blocks that are not among the model's {}, or that were named before", layers));
    next = last + 1;
    blocks[rows] += last - first + 1;
  });
  std::string text;
  for (const auto& [rows, count] : blocks)
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", count, rows);
  return text.empty() ? "none" : text + " rows";
}

// The fields of a plan's numerics, in the plan's order, with the first character of each value.
using Fields = std::vector<std::pair<std::string, char>>;
Fields numerics_fields(const std::string& plan, const std::string& path) {
  constexpr std::string_view name = "\"numerics\":";
  const size_t found = plan.find(name), begin = found + name.size();
  Fields fields;
  if (found == std::string::npos) return fields;
  JsonReader reader(std::string_view(plan).substr(begin), path + ": damaged", begin);
  reader.object([&](const std::string& key) { fields.emplace_back(key, reader.skip().front()); });
  return fields;
}

// The fields of both plans. A field that only the second has comes last.
Fields numerics_fields(const std::string (&plans)[2], const std::string (&paths)[2]) {
  Fields fields = numerics_fields(plans[0], paths[0]);
  for (const auto& field : numerics_fields(plans[1], paths[1]))
    if (std::none_of(fields.begin(), fields.end(), [&](const auto& f) { return f.first == field.first; }))
      fields.push_back(field);
  return fields;
}

std::string read_plan(const std::string& path) {
  std::string text = read_text(path);
  if (json_string(text, "", "format") != "stowage-plan" || !json_number(text, "layout", "gap") ||
      !json_number(text, "bytes", "peak"))
    throw Failure(exit_failed, fmt::format("{}: expected a plan that `stowage plan --json` wrote", path));
  if (const auto version = json_number(text, "", "version"); version != 1)
    throw Failure(exit_failed, fmt::format("{}: expected a plan of version 1, found {}", path,
                                           version ? fmt::format("{:.17g}", *version) : "none"));
  return text;
}

}  // namespace

void compare_plans(const std::string& first, const std::string& second) {
  const std::string paths[2] = {first, second};
  const std::string texts[2] = {read_plan(first), read_plan(second)};
  const std::optional<std::string> tiled[2] = {tiled_blocks(texts[0], first), tiled_blocks(texts[1], second)};
  fmt::print("{:<24}{:>24}{:>24}\n", "", first, second);
  const auto say = [](const char* name, const std::optional<std::string>& a,
                      const std::optional<std::string>& b) {
    fmt::print("{:<24}{:>24}{:>24}  {}\n", name, a.value_or("-"), b.value_or("-"), a == b ? "" : "differs");
  };
  const auto words = [&](const char* name, const char* scope, const char* key) {
    say(name, json_string(texts[0], scope, key), json_string(texts[1], scope, key));
  };
  const auto flags = [&](const char* name, const char* scope, const char* key) {
    const auto word = [](std::optional<bool> x) {
      return x ? std::optional<std::string>(*x ? "yes" : "no") : std::nullopt;
    };
    say(name, word(json_bool(texts[0], scope, key)), word(json_bool(texts[1], scope, key)));
  };
  const auto lists = [&](const char* name, const char* scope, const char* key) {
    const auto a = json_list(texts[0], scope, key), b = json_list(texts[1], scope, key);
    const auto many = [](const auto& x) {
      return !x ? "-" : x->empty() ? "none" : fmt::format("{}", x->size());
    };
    fmt::print("{:<24}{:>24}{:>24}  {}\n", name, many(a), many(b), a == b ? "" : "differs");
  };
  const auto numbers = [&](const char* name, const char* scope, const char* key, auto show) {
    const auto a = json_number(texts[0], scope, key), b = json_number(texts[1], scope, key);
    fmt::print("{:<24}{:>24}{:>24}  {}\n", name, a ? show(*a) : "-", b ? show(*b) : "-",
               a && b ? change(*a, *b) : "");
  };
  const auto whole = [](double x) {
    return std::abs(x) < 1e15 ? fmt::format("{:.0f}", x) : fmt::format("{:.3g}", x);
  };
  const auto bytes = [](double x) {
    return x >= 0 && x < 1e19 ? human_bytes(static_cast<uint64_t>(x)) : fmt::format("{:.3g}", x);
  };
  const auto seconds = [](double x) {
    return x < 1 ? fmt::format("{:.2f} ms", x * 1000) : fmt::format("{:.3f} s", x);
  };
  const auto percent = [](double x) { return fmt::format("{:.1f} %", x * 100); };
  for (int i = 0; i < 2; ++i)
    if (!json_bool(texts[i], "", "fits").value_or(true))
      fmt::print("{} does not fit its budget: its figures are those of the smallest plan\n", paths[i]);
  words("model", "model", "architecture");
  numbers("parameters", "model", "parameters", whole);
  words("device", "device", "name");
  for (const auto& [key, begin] : numerics_fields(texts, paths)) {
    if (key == "states_reason") continue;  // a sentence
    std::string name = key == "inputs" ? "optional inputs" : key;
    std::replace(name.begin(), name.end(), '_', ' ');
    switch (begin) {
      case '"': words(name.c_str(), "numerics", key.c_str()); break;
      case '[': lists(name.c_str(), "numerics", key.c_str()); break;
      case 't':
      case 'f': flags(name.c_str(), "numerics", key.c_str()); break;
      default: numbers(name.c_str(), "numerics", key.c_str(), whole);
    }
  }
  numbers("budget", "bytes", "budget", bytes);
  numbers("global batch", "request", "global_batch", whole);
  numbers("sequence", "request", "sequence", whole);
  numbers("threads", "request", "threads", whole);
  // The plan's choices are at the top; "request" has the values that were asked for.
  numbers("micro-batch", "", "micro_batch", whole);
  numbers("accumulation steps", "", "accumulation_steps", whole);
  numbers("loss chunks", "", "loss_chunks", whole);
  lists("runs of recompute", "", "recompute");
  say("blocks in tiles", tiled[0], tiled[1]);
  lists("kinds of offload", "", "offload");
  numbers("step", "predicted", "step_seconds", seconds);
  numbers("tokens/s", "predicted", "tokens_per_second", whole);
  numbers("of it recompute", "predicted", "recompute_fraction", percent);
  numbers("host memory", "bytes", "host", bytes);
  for (const char* name : {"parameters", "gradients", "optimizer", "saved_activations", "transient",
                           "workspace", "inputs", "padding", "arena", "reserve", "peak"})
    numbers(name, "bytes", name, bytes);
}

}  // namespace command
