// How the command fails: an exception with a line for people and an exit code for scripts.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "stowage.h"

namespace command {

enum ExitCode { exit_done = 0, exit_failed = 1, exit_usage = 2, exit_does_not_fit = 3 };

// The exit code of a process that a signal stopped, as shells report it.
inline int exit_of_signal(int signal) { return 128 + signal; }

// Thrown when a signal stopped a run and the user has been told so.
struct Stopped {
  int exit_code;
};

class Failure : public std::runtime_error {
 public:
  Failure(int code, const std::string& line) : std::runtime_error(line), exit_code(code) {}
  const int exit_code;
  stw_status status = STW_OK;  // the library's status, if the library failed
  uint64_t bytes_needed = 0;   // the smallest budget that works, if a plan does not fit; 0: unknown
};

// The message of a stw_error, with a field of the C API at its beginning named as the flag that set it.
inline std::string named_by_flag(std::string message) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"model: label_count is ", "--labels "},
      {"texts is for encoders", "--texts is for encoders"},
  };
  for (const auto& [field, flag] : names)
    if (message.starts_with(field)) return message.replace(0, field.size(), flag);
  return message;
}

// Calls `entry` with a stw_error. If `entry` returns neither STW_OK nor `tolerated`, throws a Failure with
// the message of the stw_error.
template <class Entry>
stw_status call(Entry&& entry, stw_status tolerated = STW_OK) {
  stw_error error{};
  error.struct_size = sizeof error;
  const stw_status status = entry(&error);
  if (status == STW_OK || status == tolerated) return status;
  const std::string message = error.message[0] ? error.message : stw_status_name(status);
  // An argument that the library rejects came from a flag.
  Failure failure(status == STW_OVER_BUDGET    ? exit_does_not_fit
                  : status == STW_BAD_ARGUMENT ? exit_usage
                                               : exit_failed,
                  named_by_flag(message));
  failure.status = status;
  throw failure;
}

}  // namespace command
