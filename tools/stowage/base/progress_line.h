// Shows the progress of a run: one line that is redrawn on a terminal, and occasional plain lines elsewhere.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "stowage.h"

namespace command {

class ProgressLine {
 public:
  // The run goes from `first` consumed batches to `last`. The bytes are those of the plan. `unit` is the unit
  // of the rate of learning, such as "pairs/s". `tokens` is the number of tokens in all samples of a batch.
  ProgressLine(uint64_t first, uint64_t last, uint64_t planned_bytes, uint64_t budget_bytes, std::string unit,
               uint64_t tokens);
  // Called after a step. Draws if enough time has passed since the last line.
  void step(const stw_progress& now);
  // Called during a step. Draws on a terminal only.
  void within(const stw_watch_info& now);
  // Writes a line above the live line.
  void say(const std::string& text);
  // Leaves the last state of the live line on the terminal.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  bool due(uint64_t batches, Clock::time_point now) const;
  // The text for a line of `columns`: the long form if it fits, else a short one.
  std::string text(const stw_progress& now, double seconds, size_t columns) const;
  // The measured rate of all tokens in samples, which a plan predicts too, and the rate in `unit_` if it
  // differs.
  std::string rates() const;
  void draw();

  const uint64_t first_, last_;
  const std::string memory_, memory_share_, unit_;
  const uint64_t tokens_;
  const bool live_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_{};
  uint64_t drawn_tenth_;
  uint64_t batches_;                  // batches that have been made
  double rate_ = 0, token_rate_ = 0;  // smoothed rates, in `unit` and in tokens of samples
  std::string shown_;
  bool is_within_ = false;  // the terminal shows a state in the middle of a step
};

}  // namespace command
