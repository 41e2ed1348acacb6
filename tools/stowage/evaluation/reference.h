// The log-probabilities that preferences like dpo are against, in files: those of the model that training begins with.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "data/data.h"
#include "base/handles.h"

namespace command {

inline constexpr const char* unfinished = ".new";   // at the end of the name of a file of them that is not a run's own yet

// Those of a run, which become files of its folder once that is the run's own.
class References {
 public:
  References() = default;
  References(const References&) = delete;
  ~References();
  // Opens `data` against `of_run`, the file of the run that goes on, or where there is none, or one of other pairs, against what the trainer says of it now. It becomes `file`.
  void open(OpenData& data, const std::string& of_run, const std::string& file, const Trainer& trainer);
  void keep();

 private:
  std::vector<std::pair<std::string, std::string>> made_, copied_;   // from where, and what they become
};

// A file without a place of its own, for as long as this lives.
class TemporaryReference {
 public:
  TemporaryReference(const Trainer& trainer, stw_dataset* data);
  // Inside of a run, which sees to signals itself: throws a Failure whose status is STW_CANCELLED where one stopped it.
  TemporaryReference(stw_trainer* trainer, stw_dataset* data);
  ~TemporaryReference();
  TemporaryReference(const TemporaryReference&) = delete;
  const std::string& path() const { return path_; }

 private:
  TemporaryReference();   // an empty file
  std::string path_;
};

}  // namespace command
