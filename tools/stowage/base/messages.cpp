#include "base/messages.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/repeated.h"

namespace command {

void write_to_stderr(std::string_view text) noexcept { write_all(text, stderr); }

void write_to_stdout(std::string_view text) noexcept { write_all(text, stdout); }

void occupy_standard_descriptors() noexcept {
  // open() takes the lowest free number, hence the ascending order. The access modes are wrong on purpose, so
  // that every use fails.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace command
