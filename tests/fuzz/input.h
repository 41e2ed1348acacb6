// Shared by the fuzzed programs: the parts of an input, and temporary files for readers that take paths.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

// Aborts if a property does not hold. The fuzzer then keeps the input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// Splits an input at the byte 0xFF, which UTF-8 never uses. Always returns `count` parts; the last one has
// the rest.
inline std::vector<std::string> parts_of(const uint8_t* data, size_t size, size_t count) {
  std::vector<std::string> parts(count);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (size_t i = 0; i < count; ++i) {
    const size_t end = i + 1 < count ? std::min(rest.find('\xff'), rest.size()) : rest.size();
    parts[i] = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return parts;
}

// A temporary folder of the process, removed with its contents at the end.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "stowage-fuzz-XXXXXX") {
    if (!::mkdtemp(path_.data())) std::abort();
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  // Returns the file's path.
  std::string write(const std::string& name, std::string_view bytes) const {
    const std::string path = path_ + "/" + name;
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    if (!file || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() || std::fclose(file) != 0)
      std::abort();
    return path;
  }

 private:
  std::string path_;
};

}  // namespace fuzz
