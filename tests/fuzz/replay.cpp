// Runs a fuzzed program, without libFuzzer, on inputs that once failed: replay_NAME FOLDER reads all files of
// the folder. The exit code is that of a test.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", words[0]);
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(words[1], failed))
    paths.push_back(entry.path());
  if (failed || paths.empty()) {
    std::fprintf(stderr, "%s: expected a folder of inputs, found none\n", words[1]);
    return 1;
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(file), {}};
    // the last line names the input that failed
    std::fprintf(stderr, "%s, %zu bytes\n", path.filename().c_str(), input.size());
    if (!file) return 1;
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  }
  return 0;
}
