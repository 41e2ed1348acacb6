// How far a long call of the library is: a line on a terminal that stderr is, which is redrawn, and gone when the call has ended.
#pragma once
#include <functional>
#include <utility>

#include "base/failure.h"
#include "stowage.h"

namespace command {

// For the options of whatever may take long; NULL where no terminal looks on.
stw_watch* work_watch();
// Takes the line back, if there is one.
void end_work_line();
// Who draws steps, while it lives: the line of a run, which is on standard output.
class StepsDrawnBy {
 public:
  explicit StepsDrawnBy(std::function<void(const stw_watch_info&)> draw);
  ~StepsDrawnBy();
  StepsDrawnBy(const StepsDrawnBy&) = delete;
};

// As call(), of an entry that may take long.
template <class Entry>
stw_status long_call(Entry&& entry, stw_status tolerated = STW_OK) {
  struct End {
    ~End() { end_work_line(); }
  } end;
  return call(std::forward<Entry>(entry), tolerated);
}

}  // namespace command
