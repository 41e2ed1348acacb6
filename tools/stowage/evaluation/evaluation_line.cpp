#include "evaluation/evaluation_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <system_error>

#include "base/messages.h"
#include "base/terminal.h"
#include "base/units.h"

namespace command {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// plain lines become rarer, so that logs stay short
constexpr Seconds live_interval{0.2}, first_interval{1}, last_interval{60};

std::string text_of(const std::string& label, const stw_progress& now, Seconds since) {
  const std::string all = grouped(now.evaluation_samples);
  const auto done = static_cast<double>(now.evaluated_samples),
             left = static_cast<double>(now.evaluation_samples - now.evaluated_samples);
  return fmt::format("{:<11} {:>{}} of {} samples  {} left", label, grouped(now.evaluated_samples),
                     all.size(), all, human_seconds(since.count() / done * left));
}

}  // namespace

EvaluationLine::EvaluationLine(const stw_trainer* trainer, std::string label, bool answers)
    : trainer_(trainer),
      label_(std::move(label)),
      answers_(answers),
      descriptor_(answers ? STDERR_FILENO : STDOUT_FILENO),
      live_(is_terminal(descriptor_)) {
  if (answers_ && !live_) return;
  try {
    thread_ = std::thread([this] {
      try {
        watch();
      } catch (...) {  // a message must not end the work that it is about
      }
    });
  } catch (const std::system_error&) {  // no thread: no progress is shown
  }
}

EvaluationLine::~EvaluationLine() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void EvaluationLine::write(const std::string& text) const {
  answers_ ? write_to_stderr(text) : write_to_stdout(text);
  if (!answers_) std::fflush(stdout);
}

void EvaluationLine::watch() {
  const Clock::time_point start = Clock::now();
  Seconds interval = live_ ? live_interval : first_interval;
  bool is_shown = false;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, interval, [this] { return over_; })) {
    stw_progress now{};
    now.struct_size = sizeof now;
    if (stw_trainer_progress(trainer_, &now) != STW_OK || now.phase != STW_PHASE_EVALUATE ||
        now.evaluated_samples == 0)
      continue;
    const Seconds since = Clock::now() - start;
    const std::string text = text_of(label_, now, since);
    write(live_ ? "\r" + text.substr(0, columns_of(descriptor_) - 1) + "\x1b[K" : text + "\n");
    is_shown = true;
    if (!live_) interval = std::clamp<Seconds>(since / 4, first_interval, last_interval);
  }
  if (live_ && is_shown) write("\r\x1b[K");
}

}  // namespace command
