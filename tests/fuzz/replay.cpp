// Runs a fuzzed program on inputs that once failed, without libFuzzer: replay_NAME FOLDER, in whose files they are. The exit code is that of a test.
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
  for (const auto& entry : std::filesystem::directory_iterator(words[1], failed)) paths.push_back(entry.path());
  if (failed || paths.empty()) {
    std::fprintf(stderr, "%s: expected a folder of inputs, found none\n", words[1]);
    return 1;
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(file), {}};
    std::fprintf(stderr, "%s, %zu bytes\n", path.filename().c_str(), input.size());   // the last line says which one failed
    if (!file) return 1;
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  }
  return 0;
}
