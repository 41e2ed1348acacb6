// Ctrl-C (SIGINT), a terminal that goes away (SIGHUP), and what a cluster sends before it kills (SIGTERM): they end the process at once, with
// the exit code 128 and the signal's number. Where a run can be gone on with, the first asks it to stop its step and save, and the second
// ends the process. Files are replaced atomically, so that is safe at any moment.
#pragma once
#include "stowage.h"

namespace command {

class Interrupt {
 public:
  // Takes over SIGINT, SIGTERM and SIGHUP. `saves`: what is under way is saved then, as people are told.
  explicit Interrupt(bool saves = true);
  ~Interrupt();  // from then on they end the process at once
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const { return exit_code() != 0; }
  // Of what a signal stops: 0 before the first one.
  int exit_code() const;
  // There is a checkpoint to go on from; until then who ends the process at once is told that there is none.
  void saved();
  // While it is set, the first signal also stops the trainer's work under way: a step that is dropped is made again, an evaluation need not
  // be finished.
  void cancels(stw_trainer* trainer);
};

// The signals above end the process at once, with their exit code. Not those that are ignored, as under nohup.
void end_at_signals();
// A file that may not grow further fails to be written, and ends nothing.
void outlive_file_limits();
// What is written to a pipe that nobody reads any more fails, and ends nothing.
void outlive_failed_writes();

}  // namespace command
