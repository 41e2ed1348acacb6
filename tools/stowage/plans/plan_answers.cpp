#include "plans/plan_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/units.h"
#include "base/work_line.h"

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
  long_call([&](stw_error* error) {
    return stw_plan_frontier_watched(plan, points.data(), points.size(), &count, work_watch(), error);
  });
  points.resize(count);
  return points;
}

// The first setting with which a sequence of one token fits.
std::string advice_for_a_token(const Model& model, stw_plan_options options) {
  options.sequence = 1;
  stw_plan* made = nullptr;
  long_call([&](stw_error* error) { return stw_plan_create(&made, model.get(), &options, error); },
            STW_OVER_BUDGET);
  const Plan plan(made);
  auto info = sized<stw_relaxation_info>();
  if (stw_plan_relaxation_at(plan.get(), 0, &info) != STW_OK || !info.fits) return "";
  return fmt::format("; with {} it does", info.flags);
}

}  // namespace

void print_frontier(const Plan& plan, bool json) {
  const std::vector<stw_frontier_point> points = frontier_of(plan.get());
  if (json) {
    fmt::print("{{\"frontier\":[");
    for (size_t i = 0; i < points.size(); ++i)
      fmt::print(
          "{}{{\"peak_bytes\":{},\"step_seconds\":{},\"tokens_per_second\":{},\"micro_batch\":{},\"knee\":{}}"
          "}",
          i ? "," : "", points[i].peak, points[i].step_seconds, points[i].tokens_per_second,
          points[i].micro_batch, points[i].is_knee != 0);
    fmt::print("]}}\n");
    return;
  }
  const stw_plan_info info = query(plan);
  fmt::print("\n  plans for other budgets     {:>16}{:>13}\n", "tokens/s", "micro-batch");
  for (const stw_frontier_point& p : points)
    fmt::print("  {:>12} {} {:>27.0f}{:>13}  {}{}\n", human_bytes(p.peak),
               p.peak == info.peak && info.fits ? "◀" : " ", p.tokens_per_second, p.micro_batch,
               bar(p.tokens_per_second / points.back().tokens_per_second), p.is_knee ? " knee" : "");
}

void print_longest_sequence(const Model& model, stw_plan_options options, bool json) {
  uint64_t sequence = 0;
  // Longer samples than the request's hold more texts by default.
  if (options.texts == default_texts(options.sequence)) options.texts = default_texts(query(model).positions);
  const stw_status status = long_call(
      [&](stw_error* error) { return stw_plan_longest_sequence(model.get(), &options, &sequence, error); },
      STW_OVER_BUDGET);
  if (json) fmt::print("{{\"longest_sequence\":{},\"positions\":{}}}\n", sequence, query(model).positions);
  else if (status == STW_OK)
    fmt::print("longest sequence that fits: {} of the model's {} positions\n", grouped(sequence),
               grouped(query(model).positions));
  if (status == STW_OVER_BUDGET)
    throw Failure(exit_does_not_fit,
                  "not even a sequence of one token fits" + advice_for_a_token(model, options));
}

}  // namespace command
