// Files of log-probabilities of the reference model, which preference losses like dpo compare with. The
// reference is the model with which training begins.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/handles.h"
#include "data/data.h"

namespace command {

// suffix of a reference file that does not yet belong to a run
inline constexpr const char* unfinished = ".new";

// The reference files of a run. They get their final names in the run's folder with keep().
class References {
 public:
  References() = default;
  References(const References&) = delete;
  ~References();
  // Reopens `data` with a reference, which keep() stores as `file`. The reference is `of_run`, the file of
  // the resumed run, if it exists and has the same pairs. Otherwise it is computed with the trainer's current
  // model.
  void open(OpenData& data, const std::string& of_run, const std::string& file, const Trainer& trainer);
  void keep();

 private:
  std::vector<std::pair<std::string, std::string>> made_, copied_;  // pairs of source and target
};

// A reference in a temporary file, which lives as long as this object.
class TemporaryReference {
 public:
  TemporaryReference(const Trainer& trainer, stw_dataset* data);
  // For use inside a run, which handles signals itself. Throws a Failure with status STW_CANCELLED if a
  // signal stopped it.
  TemporaryReference(stw_trainer* trainer, stw_dataset* data);
  ~TemporaryReference();
  TemporaryReference(const TemporaryReference&) = delete;
  const std::string& path() const { return path_; }

 private:
  TemporaryReference();  // makes an empty file
  std::string path_;
};

}  // namespace command
