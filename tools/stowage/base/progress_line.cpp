#include "base/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/messages.h"
#include "base/terminal.h"
#include "base/units.h"

namespace command {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double live_interval = 0.1;  // seconds
// seconds; the interval grows with the run, so that logs stay short
constexpr double plain_interval = 1, plain_interval_limit = 60;

uint64_t tenth(uint64_t batches, uint64_t last) { return last ? batches * 10 / last : 10; }

}  // namespace

ProgressLine::ProgressLine(uint64_t first, uint64_t last, uint64_t planned_bytes, uint64_t budget_bytes,
                           std::string unit, uint64_t tokens)
    : first_(first),
      last_(last),
      memory_(fmt::format("{} of {}", human_bytes(planned_bytes), human_bytes(budget_bytes))),
      memory_share_(fmt::format(
          "{:.0f}%", 100 * static_cast<double>(planned_bytes) / static_cast<double>(budget_bytes))),
      unit_(std::move(unit)),
      tokens_(tokens),
      live_(is_terminal(STDOUT_FILENO)),
      drawn_tenth_(tenth(first, last)),
      batches_(first) {}

bool ProgressLine::due(uint64_t batches, Clock::time_point now) const {
  if (batches == first_ + 1 || batches >= last_) return true;
  const double since = Seconds(now - drawn_).count();
  if (live_) return since >= live_interval;
  const double interval =
      std::clamp(Seconds(now - start_).count() / 20, plain_interval, plain_interval_limit);
  return since >= interval || tenth(batches, last_) != drawn_tenth_;
}

std::string ProgressLine::text(const stw_progress& now, double seconds, size_t columns) const {
  const std::string at = grouped(now.batches), total = grouped(last_), rate = rates();
  const bool over = now.batches >= last_;
  // NaN without its sign
  const auto plain = [](double x) { return std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x; };
  const double done = static_cast<double>(now.batches - first_);
  const std::string time =
      human_seconds(over ? seconds : seconds / done * static_cast<double>(last_ - now.batches));
  const std::string accuracy = unit_ == "pairs/s" ? fmt::format("  accuracy {:.3f}", now.accuracy) : "";
  std::string line = fmt::format("step {:>{}}/{}  loss {:.4f}{}  gradient {:<6.2f}  lr {:.2e}  {}  {}  {} {}",
                                 at, total.size(), total, plain(now.loss), accuracy, plain(now.grad_norm),
                                 now.learning_rate, rate, memory_, time, over ? "in all" : "left");
  if (line.size() < columns) return line;
  line = fmt::format("step {}/{} loss {:.4f}{} |g| {:.2f} lr {:.1e} {} {} mem {}", at, total, plain(now.loss),
                     unit_ == "pairs/s" ? fmt::format(" acc {:.2f}", now.accuracy) : "", plain(now.grad_norm),
                     now.learning_rate, rate, time, memory_share_);
  return line.substr(0, columns - 1);
}

std::string ProgressLine::rates() const {
  const std::string all = fmt::format("{} tokens/s", human_count(token_rate_)), learned = human_count(rate_);
  if (unit_ != "tokens/s") return fmt::format("{}, {} {}", all, learned, unit_);
  return rate_ > 0.999 * token_rate_ ? all : fmt::format("{}, {} learned", all, learned);
}

void ProgressLine::draw() {
  is_within_ = false;
  tell("{}{}{}", live_ ? "\r" : "", shown_, live_ ? "\x1b[K" : "\n");
  std::fflush(stdout);
}

void ProgressLine::within(const stw_watch_info& now) {
  if (!live_) return;
  const std::string all = grouped(now.total);
  const std::string text = fmt::format(
      "step {}/{}  {:>2.0f} %{}", grouped(batches_ + 1), grouped(last_), std::floor(100 * now.share),
      now.total > 1 ? fmt::format("  micro-step {} of {}", grouped(std::min(now.done + 1, now.total)), all)
                    : "");
  // The figures of the previous step follow, as far as there is room.
  const size_t columns = columns_of(STDOUT_FILENO);
  const size_t loss = shown_.find("loss");
  const std::string line =
      (text + (loss == std::string::npos ? "" : "  " + shown_.substr(loss))).substr(0, columns - 1);
  tell("\r{}\x1b[K", line);
  is_within_ = true;
  std::fflush(stdout);
}

void ProgressLine::step(const stw_progress& now) {
  batches_ = now.batches;
  const auto smooth = [](double& rate, double measured) {
    rate = rate > 0 ? 0.9 * rate + 0.1 * measured : measured;
  };
  smooth(rate_, now.tokens_per_second);
  smooth(token_rate_, static_cast<double>(tokens_) / std::max(now.seconds, 1e-9));
  const auto time = Clock::now();
  if (!due(now.batches, time)) return;
  drawn_ = time;
  drawn_tenth_ = tenth(now.batches, last_);
  shown_ = text(now, Seconds(time - start_).count(), live_ ? columns_of(STDOUT_FILENO) : SIZE_MAX);
  draw();
}

void ProgressLine::say(const std::string& text) {
  tell("{}{}{}\n", live_ ? "\r" : "", text, live_ ? "\x1b[K" : "");
  if (live_ && !shown_.empty()) draw();
  std::fflush(stdout);
}

void ProgressLine::finish() {
  if (live_ && is_within_) tell("\r{}\x1b[K", shown_);  // the step was stopped
  if (live_ && !shown_.empty()) tell("\n");
  shown_.clear();
  is_within_ = false;
  std::fflush(stdout);
}

}  // namespace command
