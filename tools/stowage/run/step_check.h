// Makes a step twice from one checkpoint, and compares the resulting states byte by byte.
#pragma once
#include <cstdint>
#include <string>

#include "run/run_folder.h"
#include "stowage.h"

namespace command {

class StepCheck {
 public:
  // `every`: batches between two checks; 0: no checks. Borrows the trainer.
  StepCheck(uint64_t every, const RunFolder& folder, stw_trainer* trainer);
  // Removes the files, except two that differ.
  ~StepCheck();
  StepCheck(const StepCheck&) = delete;

  bool due(uint64_t batches) const { return every_ > 0 && batches % every_ == 0; }
  // Makes a step with `first`, and with `again` the same step from the same state. Both return whether the
  // step was completed; if one was stopped, nothing is compared. Throws a Failure that names the first tensor
  // that differs.
  template <class Step, class Again>
  void run(const Step& first, const Again& again) {
    save(before_);
    if (!first()) return;
    save(once_);
    restore();
    if (again()) compare();
  }
  uint64_t checked() const { return checked_; }

 private:
  void save(const std::string& path) const;
  void restore() const;
  void compare();

  const uint64_t every_;
  stw_trainer* const trainer_;
  const std::string before_, once_, twice_;
  uint64_t checked_ = 0;
  bool differs_ = false;
};

}  // namespace command
