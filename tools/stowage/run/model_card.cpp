#include "run/model_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "base/json_fields.h"
#include "stowage.h"

namespace command {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view mark =
    "<!-- Written by `stowage train`, which replaces it as long as this line is here. -->";

// Whether the text has the form "owner/name".
bool is_name_on_hub(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == name.size() || name[0] == '.' ||
      name[slash + 1] == '.')
    return false;
  return std::all_of(name.begin() + static_cast<std::ptrdiff_t>(slash) + 1, name.end(), is_plain) &&
         std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(slash), is_plain);
}

const char* pipeline_of(uint32_t task) {
  switch (task) {
    case STW_TASK_LABEL:
    case STW_TASK_LABELS:
    case STW_TASK_NUMBER: return "text-classification";
    case STW_TASK_TOKEN_LABEL: return "token-classification";
    case STW_TASK_SPANS: return "question-answering";
    case STW_TASK_MASKED_LANGUAGE_MODEL: return "fill-mask";
    default: return "text-generation";
  }
}

std::vector<std::pair<std::string, double>> metrics_of(const Evaluation& evaluation) {
  std::vector<std::pair<std::string, double>> metrics{{"loss", evaluation.loss}};
  if (evaluation.accuracy) metrics.emplace_back("accuracy", *evaluation.accuracy);
  if (evaluation.rmse) metrics.emplace_back("rmse", *evaluation.rmse);
  metrics.insert(metrics.end(), evaluation.figures.begin(), evaluation.figures.end());
  if (!evaluation.accuracy && !evaluation.rmse) metrics.emplace_back("perplexity", std::exp(evaluation.loss));
  std::erase_if(metrics, [](const auto& metric) { return !std::isfinite(metric.second); });
  return metrics;
}

// The name without its folders, which should not be published.
std::string last_part(const std::string& path) {
  return fs::path(path).lexically_normal().filename().string();
}

// Escapes a text for a cell of a table.
std::string in_cell(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '|' ? std::string("\\|") : c == '\n' ? std::string(" ") : std::string(1, c);
  return out;
}

}  // namespace

bool is_card_of_run(const std::string& path) {
  constexpr size_t longest = 65536;  // bytes up to the mark, which follows the front matter
  return beginning_of(path, longest).find(mark) != std::string::npos;
}

std::string name_on_hub(const std::string& model) {
  const std::string path = fs::absolute(model).lexically_normal().string();
  constexpr std::string_view cache = "models--";  // models--owner--name/snapshots/…
  for (const fs::path& part : fs::path(path)) {
    std::string name = part.string();
    if (!name.starts_with(cache)) continue;
    name.erase(0, cache.size());
    if (const size_t between = name.find("--"); between != std::string::npos) name.replace(between, 2, "/");
    if (is_name_on_hub(name)) return name;
  }
  return "";  // a config's _name_or_path is the model that its author began with
}

std::string model_card(const ModelCard& card) {
  const std::string name = last_part(fs::absolute(card.folder).string()),
                    hub = is_folder(card.base) ? name_on_hub(card.base) : "", data = last_part(card.data);
  std::string text = fmt::format("---\nlibrary_name: {}\npipeline_tag: {}\n",
                                 card.has_adapters ? "peft" : "transformers", pipeline_of(card.task));
  if (!hub.empty()) text += fmt::format("base_model: {}\n", json_quoted(hub));
  text += "tags:\n- stowage\n";
  if (card.has_adapters) text += "- lora\n";
  if (card.has_pairs) text += "- preference-optimization\n";
  const auto metrics =
      card.is_evaluated ? metrics_of(card.evaluation) : decltype(metrics_of(card.evaluation))();
  if (!metrics.empty()) {
    text += fmt::format(
        "model-index:\n- name: {}\n  results:\n  - task:\n      type: {}\n    dataset:\n      type: {}\n     "
        " name: {}\n    metrics:\n",
        json_quoted(name), pipeline_of(card.task), json_quoted(data), json_quoted(data));
    for (const auto& [type, value] : metrics)
      text += fmt::format("    - type: {}\n      value: {}\n", type, value);
  }
  text += fmt::format(
      "---\n\n{}\n\n# {}\n\nA {} model, {} by Stowage {}.\n\n| | |\n|---|---|\n", mark, name,
      card.architecture, card.is_merged ? "with low-rank adapters added to its weights" : "trained",
      fmt::format("{}.{}.{}", stw_version() / 10000, stw_version() / 100 % 100, stw_version() % 100));
  text += fmt::format("| model before | {} |\n", in_cell(hub.empty() ? last_part(card.base) : hub));
  for (const auto& [what, value] : card.rows) text += fmt::format("| {} | {} |\n", what, in_cell(value));
  if (!metrics.empty()) {
    std::string list;
    for (const auto& [type, value] : metrics)
      list += fmt::format("{}{} {:.6g}", list.empty() ? "" : ", ", type, value);
    text += fmt::format("| evaluation on {} | {} |\n", in_cell(data), list);
  }
  return text;
}

}  // namespace command
