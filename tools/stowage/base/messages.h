// What the command says beside its answers. Neither throws nor fails: a message must not end what it is about.
#pragma once
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/prompt.h"

namespace command {

// As it is, on stderr. Where that is closed or full the words are lost, and the exit code says the rest.
void write_to_stderr(std::string_view text) noexcept;
// As it is, on standard output. A failure stays with the stream: `main` reports it in the end.
void write_to_stdout(std::string_view text) noexcept;

// A line on stderr, which steers no terminal whatever a path has in it.
template <class... Values>
void complain(fmt::format_string<Values...> format, Values&&... values) noexcept {
  try {
    write_to_stderr(printable(fmt::format(format, std::forward<Values>(values)...)) + "\n");
  } catch (...) {   // no memory for it
  }
}

// Lines on standard output, of what goes on where nobody listens any more.
template <class... Values>
void tell(fmt::format_string<Values...> format, Values&&... values) noexcept {
  try {
    write_to_stdout(fmt::format(format, std::forward<Values>(values)...));
  } catch (...) {
  }
}

// The descriptors 0 to 2 that the caller closed are opened so that their use fails as if they were closed: no file that is
// opened later gets their number, and with it what is written to them.
void occupy_standard_descriptors() noexcept;

}  // namespace command
