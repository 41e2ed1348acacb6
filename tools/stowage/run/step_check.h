// The same step twice: from one checkpoint, with all that a step leaves behind compared byte by byte.
#pragma once
#include <cstdint>
#include <string>

#include "run/run_folder.h"
#include "stowage.h"

namespace command {

class StepCheck {
 public:
  // `every`: batches between two checks; 0: none. Borrows the trainer.
  StepCheck(uint64_t every, const RunFolder& folder, stw_trainer* trainer);
  // Removes its files, but those that differ.
  ~StepCheck();
  StepCheck(const StepCheck&) = delete;

  bool due(uint64_t batches) const { return every_ > 0 && batches % every_ == 0; }
  // Makes a step, and the same step again from the same state. Throws where what it leaves differs, naming the first tensor that does. Either
  // answers whether it was made, and not stopped: then nothing is compared.
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
