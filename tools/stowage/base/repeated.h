// Calls of the system that a signal may cut short.
#pragma once
#include <cerrno>
#include <cstdio>
#include <string_view>

namespace command {

// Again where a signal came in between.
template <class Call>
auto repeated(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// Null, and errno, where it cannot be opened.
inline std::FILE* open_file(const char* path, const char* mode) {
  std::FILE* file = std::fopen(path, mode);
  while (!file && errno == EINTR) file = std::fopen(path, mode);
  return file;
}

// How many bytes were written; all of them unless there is an error, which errno says.
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
