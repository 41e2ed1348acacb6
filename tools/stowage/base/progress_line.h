// What a person sees while a run goes on: one line that is redrawn on a terminal, plain lines now and then elsewhere.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "stowage.h"

namespace command {

class ProgressLine {
 public:
  // From `first` batches consumed to `last`. Bytes are the plan's. `unit`: of what is learned in a second; `tokens`: of all
  // samples of a batch.
  ProgressLine(uint64_t first, uint64_t last, uint64_t planned_bytes, uint64_t budget_bytes, std::string unit, uint64_t tokens);
  // After a step; draws where it is time to.
  void step(const stw_progress& now);
  // In the middle of a step; on a terminal alone.
  void within(const stw_watch_info& now);
  // A line of its own, above the live line.
  void say(const std::string& text);
  // Leaves the last state of the live line on the terminal.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  bool due(uint64_t batches, Clock::time_point now) const;
  // For a line of `columns`: in words where they fit, else in short.
  std::string text(const stw_progress& now, double seconds, size_t columns) const;
  // Of all tokens of samples, as a plan predicts them, and of those that are learned, or other units, where these are not the same.
  std::string rates() const;
  void draw();

  const uint64_t first_, last_;
  const std::string memory_, memory_share_, unit_;
  const uint64_t tokens_;
  const bool live_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_{};
  uint64_t drawn_tenth_;
  uint64_t batches_;   // that are made
  double rate_ = 0, token_rate_ = 0;  // of `unit`, and of tokens of samples; smoothed
  std::string shown_;
  bool is_within_ = false;   // what is on the terminal tells of the middle of a step
};

}  // namespace command
