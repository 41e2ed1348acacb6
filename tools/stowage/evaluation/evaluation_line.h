// How far a long evaluation is, while another thread waits for it: a line that is redrawn on a terminal; plain lines now and then
// elsewhere, where they are wanted.
#pragma once
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "stowage.h"

namespace command {

class EvaluationLine {
 public:
  // `label`: the line's first word. `answers`: standard output is for the answer, so that a terminal on stderr is shown the line, and
  // nothing else is.
  EvaluationLine(const stw_trainer* trainer, std::string label, bool answers);
  ~EvaluationLine();   // takes the live line back
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
  std::thread thread_;   // none where the system has no more
};

}  // namespace command
