// The first minute on a card: checks that our compiled kernels compute the right results, and measures their
// speed.
//
//   gpu_probe [--small] [--seconds N] [--part-seconds N] [--out FILE] [--figures FILE] [PART...]
//   gpu_probe --here once    one launch of each of six kernels, in this process, for a profiler
//
// Prints one line for each result at once, and a table of all results at the end. The exit status is 0 if
// bits and values are right, 1 if not, and 77 if there is no device. No measured speed makes it fail. Figures
// for tests/gpu/decisions.py go to a file of their own.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/gpu/probe/parts.h"

using namespace stw::probe;

// The parts with our own kernels come before those with NVIDIA's libraries, which may load slowly or decline
// something. The most important come first.
static const std::vector<Part> all_parts = {
    {"copy", measure_copy},           {"tiles", check_tiles},       {"attention", check_attention},
    {"branch", check_branch},         {"variants", check_variants}, {"costs", measure_costs},
    {"products", measure_products},   {"chain", check_chain},       {"losses", check_losses},
    {"updates", check_updates},       {"norms", check_norms},       {"peak", measure_peak},
    {"libraries", measure_libraries},
};
// Runs only if named.
static const Part once = {"once", run_once};

static int usage(const std::string& wrong) {
  std::string names;
  for (const Part& part : all_parts) names += " " + part.name;
  std::fprintf(
      stderr,
      "gpu_probe: %s\nusage: gpu_probe [--small] [--seconds N] [--part-seconds N] [--wgmma-seconds N] "
      "[--out FILE] [--figures FILE] [--crash PART] [--hang PART] [PART...]\nparts:%s once\n",
      wrong.c_str(), names.c_str());
  return 2;
}

int main(int count, char** words) {
  Options options;
  std::vector<Part> parts;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--small" || word == "--here") {
      (word == "--small" ? options.small : options.here) = true;
      continue;
    }
    if (word.starts_with("--")) {
      if (i + 1 == count) return usage(word + ": a value is missing");
      const std::string value = words[++i];
      if (word == "--seconds") options.seconds = std::atof(value.c_str());
      else if (word == "--part-seconds") options.part_seconds = std::atof(value.c_str());
      else if (word == "--wgmma-seconds") options.wgmma_seconds = std::atof(value.c_str());
      else if (word == "--out") options.file = value;
      else if (word == "--figures") options.figures = value;
      else if (word == "--crash") options.crash = value;
      else if (word == "--hang") options.hang = value;
      else return usage(word + " is no option");
      continue;
    }
    bool found = word == once.name;
    if (found) parts.push_back(once);
    for (const Part& part : all_parts)
      if (part.name == word) parts.push_back(part), found = true;
    if (!found) return usage(word + " is no part");
  }
  return run_parts(options, parts.empty() ? all_parts : parts);
}
