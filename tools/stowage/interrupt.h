// Ctrl-C, a terminal that goes away, and what a cluster sends before it kills: the first asks the run to finish its step and
// save, the second ends the process at once. Files are replaced atomically, so that is safe at any moment.
#pragma once
#include "stowage.h"

namespace command {

class Interrupt {
 public:
  // Takes over SIGINT, SIGTERM and SIGHUP. `saves`: what is under way is saved then, as people are told.
  explicit Interrupt(bool saves = true);
  ~Interrupt();  // gives the first two back
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;
  // There is a checkpoint to go on from; until then who ends the process at once is told that there is none.
  void saved();
  // While it is set, the first signal also stops the trainer's work under way. For evaluations, which are long and
  // need not be finished.
  void cancels(stw_trainer* trainer);
};

// A file that may not grow further fails to be written, and ends nothing.
void outlive_file_limits();
// What is written to a pipe that nobody reads any more fails, and ends nothing.
void outlive_failed_writes();

}  // namespace command
