// Shows the progress of a long evaluation from a separate thread: a line that is redrawn on a terminal, or
// occasional plain lines elsewhere.
#pragma once
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "stowage.h"

namespace command {

class EvaluationLine {
 public:
  // `label` is the first word of the line. If `answers` is true, standard output is reserved for the answer.
  // The line then goes to stderr, or nowhere if stderr is not a terminal.
  EvaluationLine(const stw_trainer* trainer, std::string label, bool answers);
  ~EvaluationLine();  // removes the live line
  EvaluationLine(const EvaluationLine&) = delete;
  EvaluationLine& operator=(const EvaluationLine&) = delete;

 private:
  void watch();
  void write(const std::string& text) const;

  const stw_trainer* trainer_;
  const std::string label_;
  const bool answers_;
  const int descriptor_;
  const bool live_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;  // not running if the system could not start it
};

}  // namespace command
