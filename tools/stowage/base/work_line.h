// Shows the progress of a long call of the library: a line on stderr that is redrawn and removed when the
// call ends. It appears only if stderr is a terminal.
#pragma once
#include <functional>
#include <utility>

#include "base/failure.h"
#include "stowage.h"

namespace command {

// The watch for the options of calls that may take long. Null if stderr is not a terminal.
stw_watch* work_watch();
// Removes the line, if there is one.
void end_work_line();
// While an object of this type lives, its function draws steps. A run uses it to draw them on standard
// output.
class StepsDrawnBy {
 public:
  explicit StepsDrawnBy(std::function<void(const stw_watch_info&)> draw);
  ~StepsDrawnBy();
  StepsDrawnBy(const StepsDrawnBy&) = delete;
};

// The same as call(), for an entry that may take long.
template <class Entry>
stw_status long_call(Entry&& entry, stw_status tolerated = STW_OK) {
  struct End {
    ~End() { end_work_line(); }
  } end;
  return call(std::forward<Entry>(entry), tolerated);
}

}  // namespace command
