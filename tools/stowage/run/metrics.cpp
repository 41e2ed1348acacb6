#include "run/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <string_view>

#include "base/failure.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "base/repeated.h"

namespace command {
namespace {

constexpr const char* skip_names[] = {"none", "no_target", "not_finite", "outlier"};  // STW_SKIP_*

constexpr size_t longest_line = 512;

// Builds one JSON object on one line, in its own buffer.
class Line {
 public:
  Line& add(std::string_view name, uint64_t value) {
    begin(name);
    end_ = std::to_chars(end_, std::end(text_), value).ptr;
    return *this;
  }
  // Writes the shortest text that reads back the same, or null if the value is not finite.
  Line& add(std::string_view name, double value) {
    begin(name);
    if (std::isfinite(value)) end_ = std::to_chars(end_, std::end(text_), value).ptr;
    else append("null");
    return *this;
  }
  Line& add(std::string_view name, const char* word) {
    begin(name);
    append("\"");
    append(word);
    append("\"");
    return *this;
  }
  std::string_view finish() {
    append("}\n");
    return {text_, static_cast<size_t>(end_ - text_)};
  }

 private:
  void append(std::string_view part) { end_ = std::copy(part.begin(), part.end(), end_); }
  void begin(std::string_view name) {
    append(end_ == text_ ? "{\"" : ",\"");
    append(name);
    append("\":");
  }

  char text_[longest_line];  // room for twelve numbers of at most 24 characters and their names
  char* end_ = text_;
};

template <class Visit>
void each_line(std::string_view text, Visit&& visit) {
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    visit(text.substr(0, end));
}

}  // namespace
Metrics::Metrics(const std::string& path, MetricFields fields)
    : path_(path), fields_(fields), file_(open_file(path.c_str(), "ab")) {
  if (!file_) throw Failure(exit_failed, fmt::format("{}: cannot write: {}", path, std::strerror(errno)));
  // unbuffered, so that it is known how much of a line was written
  std::setvbuf(file_.get(), nullptr, _IONBF, 0);
  rest_.reserve(longest_line);
}

void Metrics::write(std::string_view line) {
  if (failed_) return;
  const size_t written = write_all(line, file_.get());
  if (written == line.size()) return;
  failed_ = errno ? errno : EIO;
  rest_ = line.substr(written);
}

bool Metrics::write_rest() {
  rest_.erase(0, write_all(rest_, file_.get()));
  return rest_.empty();
}

void Metrics::check() const {
  if (failed_) throw Failure(exit_failed, fmt::format("{}: cannot write: {}", path_, std::strerror(failed_)));
}

void Metrics::step(const stw_progress& now, bool skipped) {
  Line line;
  line.add("step", now.step)
      .add("loss", now.loss)
      .add("grad_norm", now.grad_norm)
      .add("lr", now.learning_rate);
  if (fields_.unit && !skipped) fields_.tokens_before += now.sample_tokens;
  line.add("tokens", fields_.unit ? fields_.tokens_before : now.tokens).add("seconds", now.seconds);
  line.add("tokens_per_second", fields_.unit
                                    ? static_cast<double>(now.sample_tokens) / std::max(now.seconds, 1e-9)
                                    : now.tokens_per_second);
  line.add("sample_tokens_per_second",
           static_cast<double>(fields_.batch_tokens) / std::max(now.seconds, 1e-9));
  if (fields_.unit) line.add(fields_.unit, now.tokens);
  if (fields_.accuracy) line.add("accuracy", now.accuracy);
  if (fields_.loss_scale) line.add("loss_scale", now.loss_scale);
  if (skipped)
    line.add("skipped_batch", now.batches)
        .add("skip_reason", skip_names[std::min<size_t>(now.skip_reason, 3)]);
  write(line.finish());
}

void Metrics::evaluation(uint64_t step, const Evaluation& evaluation) {
  Line line;
  line.add("step", step).add("eval_loss", evaluation.loss);
  if (evaluation.accuracy) line.add("eval_accuracy", *evaluation.accuracy);
  if (evaluation.rmse) line.add("eval_rmse", *evaluation.rmse);
  for (const auto& [name, value] : evaluation.figures) line.add("eval_" + name, value);
  write(line.finish());
}

std::optional<double> Evaluation::figure(std::string_view name) const {
  for (const auto& [known, value] : figures)
    if (known == name) return value;
  return std::nullopt;
}

void Metrics::no_evaluation(uint64_t step) {
  Line line;
  line.add("step", step)
      .add("eval_loss", std::numeric_limits<double>::quiet_NaN())
      .add("skip_reason", skip_names[STW_SKIP_NO_TARGET]);
  write(line.finish());
}

std::string Metrics::kept(const std::string& text, uint64_t step, uint64_t batches, bool keep_evaluation) {
  std::string out;
  each_line(text, [&](std::string_view line) {
    const auto at = json_number(line, "", "step");
    const auto skipped = json_number(line, "", "skipped_batch");
    if (!at || !line.ends_with('}') || *at > static_cast<double>(step)) return;
    if (skipped && *skipped > static_cast<double>(batches)) return;
    if (!keep_evaluation && *at == static_cast<double>(step) && json_number(line, "", "eval_loss")) return;
    out.append(line) += '\n';
  });
  return out;
}

std::optional<Evaluation> evaluation_at(const std::string& text, std::optional<uint64_t> step) {
  std::optional<Evaluation> found;
  each_line(text, [&](std::string_view line) {
    if (line.find("\"eval_loss\"") == std::string_view::npos ||
        line.find("\"skip_reason\"") != std::string_view::npos ||
        (step && json_integer(line, "", "step") != *step))
      return;
    constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
    found.emplace();
    found->loss = json_number(line, "", "eval_loss").value_or(undefined);
    found->accuracy = json_number(line, "", "eval_accuracy");
    found->rmse = json_number(line, "", "eval_rmse");
    for (const char* name : {"f1_macro", "f1_micro", "matthews", "f1", "mse", "mae", "pearson", "spearman",
                             "precision", "recall", "reward_margin", "reward_chosen", "reward_rejected"})
      if (const auto value = json_number(line, "", std::string("eval_") + name))
        found->figures.emplace_back(name, *value);
  });
  return found;
}

std::optional<double> last_rate(const std::string& text) {
  std::optional<double> rate;
  each_line(text, [&](std::string_view line) {
    if (const auto of_line = json_number(line, "", "lr")) rate = of_line;
  });
  return rate;
}

uint64_t tokens_so_far(const std::string& text) {
  uint64_t tokens = 0;
  each_line(text, [&](std::string_view line) { tokens = json_integer(line, "", "tokens").value_or(tokens); });
  return tokens;
}

MetricHistory read_metrics(const std::string& text) {
  MetricHistory history;
  each_line(text, [&](std::string_view line) {
    const auto step = json_number(line, "", "step");
    if (!step) return;
    if (const auto loss = json_number(line, "", "loss")) history.losses.push_back({*step, *loss});
    if (const auto loss = json_number(line, "", "eval_loss")) history.evaluations.push_back({*step, *loss});
    if (const auto accuracy = json_number(line, "", "eval_accuracy"))
      history.accuracies.push_back({*step, *accuracy});
    if (const auto error = json_number(line, "", "eval_rmse")) history.errors.push_back({*step, *error});
  });
  return history;
}

}  // namespace command
