#include "progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "units.h"

namespace command {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double live_interval = 0.1;                            // seconds
constexpr double plain_interval = 1, plain_interval_limit = 60;  // seconds; grows with the run, so that logs stay short

bool is_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) && kind && std::strcmp(kind, "dumb") != 0;
}

size_t columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

uint64_t tenth(uint64_t batches, uint64_t last) { return last ? batches * 10 / last : 10; }

}  // namespace

ProgressLine::ProgressLine(uint64_t first, uint64_t last, uint64_t planned_bytes, uint64_t budget_bytes)
    : first_(first),
      last_(last),
      memory_(fmt::format("{} of {}", human_bytes(planned_bytes), human_bytes(budget_bytes))),
      live_(is_terminal()),
      drawn_tenth_(tenth(first, last)) {}

bool ProgressLine::due(uint64_t batches, Clock::time_point now) const {
  if (batches == first_ + 1 || batches >= last_) return true;
  const double since = Seconds(now - drawn_).count();
  if (live_) return since >= live_interval;
  const double interval = std::clamp(Seconds(now - start_).count() / 20, plain_interval, plain_interval_limit);
  return since >= interval || tenth(batches, last_) != drawn_tenth_;
}

std::string ProgressLine::text(const stw_progress& now, double seconds) const {
  const std::string total = grouped(last_);
  const uint64_t done = now.batches - first_;
  const double left = done ? seconds / static_cast<double>(done) * static_cast<double>(last_ - now.batches) : 0;
  return fmt::format("step {:>{}}/{}  loss {:.4f}  gradient {:<8.3g}  lr {:.2e}  {:>6} tokens/s  {}  {}",
                     grouped(now.batches), total.size(), total, now.loss, now.grad_norm, now.learning_rate,
                     human_count(rate_), memory_,
                     now.batches < last_ ? human_seconds(left) + " left" : human_seconds(seconds) + " in all");
}

void ProgressLine::step(const stw_progress& now) {
  rate_ = rate_ > 0 ? 0.9 * rate_ + 0.1 * now.tokens_per_second : now.tokens_per_second;
  const auto time = Clock::now();
  if (!due(now.batches, time)) return;
  drawn_ = time;
  drawn_tenth_ = tenth(now.batches, last_);
  shown_ = text(now, Seconds(time - start_).count());
  if (live_)
    fmt::print("\r{}\x1b[K", std::string_view(shown_).substr(0, columns() - 1));
  else
    fmt::print("{}\n", shown_);
  std::fflush(stdout);
}

void ProgressLine::say(const std::string& text) {
  if (live_ && !shown_.empty())
    fmt::print("\r{}\x1b[K\n{}", text, std::string_view(shown_).substr(0, columns() - 1));
  else
    fmt::print("{}\n", text);
  std::fflush(stdout);
}

void ProgressLine::finish() {
  if (live_ && !shown_.empty()) fmt::print("\n");
  shown_.clear();
  std::fflush(stdout);
}

}  // namespace command
