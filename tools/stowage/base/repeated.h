// System calls that a signal may interrupt.
#pragma once
#include <cerrno>
#include <cstdio>
#include <string_view>

namespace command {

// Repeats the call while a signal interrupts it.
template <class Call>
auto repeated(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// Returns null and sets errno if the file cannot be opened.
inline std::FILE* open_file(const char* path, const char* mode) {
  std::FILE* file = std::fopen(path, mode);
  while (!file && errno == EINTR) file = std::fopen(path, mode);
  return file;
}

// Returns the number of bytes written. If it is less than all of them, errno has the error.
inline size_t write_all(std::string_view bytes, std::FILE* file) {
  size_t done = 0;
  while (done < bytes.size()) {
    errno = 0;
    done += std::fwrite(bytes.data() + done, 1, bytes.size() - done, file);
    if (done == bytes.size()) break;
    if (errno != EINTR) return done;
    std::clearerr(file);
  }
  return done;
}

}  // namespace command
