// Messages of the command, in addition to its answers. These functions neither throw nor fail: a message must
// not end the work that it is about.
#pragma once
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/prompt.h"

namespace command {

// Writes the text unchanged to stderr. If stderr is closed or full, the text is lost, and only the exit code
// reports the failure.
void write_to_stderr(std::string_view text) noexcept;
// Writes the text unchanged to standard output. A failure stays in the stream's state, and `main` reports it
// at the end.
void write_to_stdout(std::string_view text) noexcept;

// Writes a line to stderr. Control characters, such as those in a path, are replaced.
template <class... Values>
void complain(fmt::format_string<Values...> format, Values&&... values) noexcept {
  try {
    write_to_stderr(printable(fmt::format(format, std::forward<Values>(values)...)) + "\n");
  } catch (...) {  // out of memory
  }
}

// Writes lines to standard output, for work that continues even if they cannot be written.
template <class... Values>
void tell(fmt::format_string<Values...> format, Values&&... values) noexcept {
  try {
    write_to_stdout(fmt::format(format, std::forward<Values>(values)...));
  } catch (...) {}
}

// Opens those of descriptors 0 to 2 that were closed when the command was called. Using them still fails, as
// if they were closed. Without this call, a file that is opened later could get one of these numbers, and the
// output of the command would go into it.
void occupy_standard_descriptors() noexcept;

}  // namespace command
