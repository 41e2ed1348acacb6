// How the command fails: one exception that carries the line for people and the exit code for scripts.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

#include "stowage.h"

namespace command {

enum ExitCode { exit_done = 0, exit_failed = 1, exit_usage = 2, exit_does_not_fit = 3 };

// What a signal ended is not done. Shells give such a process this code.
inline int exit_of_signal(int signal) { return 128 + signal; }

// A run that a signal stopped, and that has said so.
struct Stopped { int exit_code; };

class Failure : public std::runtime_error {
 public:
  Failure(int code, const std::string& line) : std::runtime_error(line), exit_code(code) {}
  const int exit_code;
  stw_status status = STW_OK;    // of the library, where it is at the bottom of it
  uint64_t bytes_needed = 0;   // of what does not fit: the smallest budget that works; 0: not known
};

// Calls `entry` with a stw_error and throws a Failure with its message unless it answers STW_OK or `tolerated`.
template <class Entry>
stw_status call(Entry&& entry, stw_status tolerated = STW_OK) {
  stw_error error{};
  error.struct_size = sizeof error;
  const stw_status status = entry(&error);
  if (status == STW_OK || status == tolerated) return status;
  const std::string message = error.message[0] ? error.message : stw_status_name(status);
  // What the library finds wrong with an argument came from a flag.
  Failure failure(status == STW_OVER_BUDGET ? exit_does_not_fit : status == STW_BAD_ARGUMENT ? exit_usage : exit_failed, message);
  failure.status = status;
  throw failure;
}

}  // namespace command
