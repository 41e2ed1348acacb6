// Runs one kernel of a PTX file, from any compiler:
//   ptx_run FILE KERNEL BLOCKS THREADS SHARED_BYTES ARGUMENT...
// An argument is an int, a float if it has a point, or a null pointer if it is 0 for a pointer. Any other
// argument is the name of a file with the memory to which the parameter points. The kernel's output is
// written to that file. Prints the kernel's traffic.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tests/ptx/machine.h"

namespace {

template <class T>
bool is_number(std::string_view text, T& value) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}
uint32_t count_of(const char* text) {
  uint32_t n = 0;
  if (!is_number(text, n)) ptx::die("expected a number, found " + std::string(text));
  return n;
}

void* memory_of(const char* path) {
  const int file = open(path, O_RDWR);
  struct stat about;
  if (file < 0 || fstat(file, &about) != 0) ptx::die(std::string(path) + ": cannot be opened");
  void* const memory =
      mmap(nullptr, static_cast<size_t>(about.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) ptx::die(std::string(path) + ": cannot be mapped");
  return memory;
}

void put(const char* argument, uint32_t bytes, char* to) {
  int32_t whole = 0;
  float real = 0;
  const bool is_whole = is_number(argument, whole);
  if (bytes == 8) {
    void* const memory = is_whole && whole == 0 ? nullptr : memory_of(argument);
    std::memcpy(to, &memory, sizeof memory);
  } else if (bytes == 4 && is_whole) {
    std::memcpy(to, &whole, sizeof whole);
  } else if (bytes == 4 && is_number(argument, real)) {
    std::memcpy(to, &real, sizeof real);
  } else {
    ptx::die(std::string(argument) + ": is for a parameter of " + std::to_string(bytes) + " bytes");
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 6) ptx::die("usage: ptx_run FILE KERNEL BLOCKS THREADS SHARED_BYTES ARGUMENT...");
  std::ifstream file(arguments[1]);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) ptx::die(std::string(arguments[1]) + ": cannot be read");
  const auto module = ptx::read_module(text.str());
  ptx::Function& function = ptx::function_of(*module, arguments[2]);
  if (static_cast<size_t>(count - 6) != function.parameters.size())
    ptx::die("expected " + std::to_string(function.parameters.size()) + " arguments");
  for (size_t k = 0; k < function.parameters.size(); ++k)
    put(arguments[6 + k], function.parameters[k].bytes,
        function.parameter_memory.data() + function.parameters[k].at);
  ptx::count_traffic(true);
  ptx::run(function,
           {{count_of(arguments[3]), 1, 1}, {count_of(arguments[4]), 1, 1}, count_of(arguments[5])});
  for (const auto& [name, t] : ptx::traffic())
    std::printf("%llu instructions, %llu sectors of at least %llu, %llu turns of at least %llu\n",
                static_cast<unsigned long long>(t.instructions), static_cast<unsigned long long>(t.sectors),
                static_cast<unsigned long long>(t.least_sectors), static_cast<unsigned long long>(t.turns),
                static_cast<unsigned long long>(t.least_turns));
}
