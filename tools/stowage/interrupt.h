// Ctrl-C, and what a cluster sends before it kills: the first asks the run to finish its step and save, the second ends
// the process at once. Files are replaced atomically, so that is safe at any moment.
#pragma once
#include "stowage.h"

namespace command {

class Interrupt {
 public:
  Interrupt();   // takes over SIGINT and SIGTERM
  ~Interrupt();  // gives them back
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;
  // While it is set, the first signal also stops the trainer's work under way. For evaluations, which are long and
  // need not be finished.
  void cancels(stw_trainer* trainer);
};

}  // namespace command
