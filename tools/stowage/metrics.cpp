#include "metrics.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <string_view>

#include "failure.h"
#include "files.h"

namespace command {
namespace {

constexpr size_t line_limit = 400;  // seven numbers of at most 24 characters and their names

// A number as JSON has it: the shortest text that reads back the same, null where it is not finite.
struct Number {
  double value;
};

template <class Visit>
void each_line(std::string_view text, Visit&& visit) {
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    visit(text.substr(0, end));
}

}  // namespace
}  // namespace command

template <>
struct fmt::formatter<command::Number> : fmt::formatter<double> {
  template <class Context>
  auto format(const command::Number& number, Context& context) const {
    if (!std::isfinite(number.value)) return fmt::format_to(context.out(), "null");
    return fmt::formatter<double>::format(number.value, context);
  }
};

namespace command {

Metrics::Metrics(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "ab")) {
  if (!file_) throw Failure(exit_failed, fmt::format("{}: cannot write: {}", path, std::strerror(errno)));
}

void Metrics::write(const char* line, size_t count) {
  if (std::fwrite(line, 1, count, file_.get()) == count && std::fflush(file_.get()) == 0) return;
  if (!failed_) failed_ = errno ? errno : EIO;
}

void Metrics::check() const {
  if (failed_) throw Failure(exit_failed, fmt::format("{}: cannot write: {}", path_, std::strerror(failed_)));
}

void Metrics::step(const stw_progress& now, bool skipped) {
  char line[line_limit];
  auto end = fmt::format_to_n(
                 line, line_limit - 64,
                 R"({{"step":{},"loss":{},"grad_norm":{},"lr":{},"tokens":{},"seconds":{},"tokens_per_second":{}}})",
                 now.step, Number{now.loss}, Number{now.grad_norm}, Number{now.learning_rate}, now.tokens,
                 Number{now.seconds}, Number{now.tokens_per_second})
                 .out;
  if (skipped) end = fmt::format_to_n(end - 1, 60, ",\"skipped_batch\":{}}}", now.batches).out;
  *end++ = '\n';
  write(line, static_cast<size_t>(end - line));
}

void Metrics::evaluation(uint64_t step, double loss) {
  char line[line_limit];
  auto end = fmt::format_to_n(line, line_limit, "{{\"step\":{},\"eval_loss\":{}}}\n", step, Number{loss}).out;
  write(line, static_cast<size_t>(end - line));
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

MetricHistory read_metrics(const std::string& text) {
  MetricHistory history;
  each_line(text, [&](std::string_view line) {
    const auto step = json_number(line, "", "step");
    if (!step) return;
    if (const auto loss = json_number(line, "", "loss")) history.losses.push_back({*step, *loss});
    if (const auto loss = json_number(line, "", "eval_loss")) history.evaluations.push_back({*step, *loss});
  });
  return history;
}

}  // namespace command
