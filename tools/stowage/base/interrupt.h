// Signals that ask the command to stop: SIGINT (Ctrl-C), SIGHUP (the terminal was closed) and SIGTERM (a
// cluster sends it before it kills). By default they end the process at once, with exit code 128 plus the
// signal's number. During a run that can be resumed, the first signal asks the run to stop its step and save,
// and the second one ends the process. This is safe at any moment, because files are replaced atomically.
#pragma once
#include "stowage.h"

namespace command {

class Interrupt {
 public:
  // Handles SIGINT, SIGTERM and SIGHUP. `saves`: the message to the user says that the run is saved first.
  explicit Interrupt(bool saves = true);
  ~Interrupt();  // from here on the signals end the process at once
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const { return exit_code() != 0; }
  // The exit code for the first signal; 0 before it.
  int exit_code() const;
  // Records that there is a checkpoint to resume from. Before that, the message of an immediate end says that
  // there is none.
  void saved();
  // While a trainer is set, the first signal also cancels its current work. A cancelled step is made again
  // after resuming; a cancelled evaluation is given up.
  void cancels(stw_trainer* trainer);
};

// From now on the signals above end the process at once, with their exit code. Signals that are ignored, as
// under nohup, stay ignored.
void end_at_signals();
// Makes writes beyond the limit on file sizes fail, instead of ending the process.
void outlive_file_limits();
// Makes writes to a pipe that has no reader fail, instead of ending the process.
void outlive_failed_writes();

}  // namespace command
