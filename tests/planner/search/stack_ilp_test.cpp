// Compares the choice of save-sets with an integer linear program, which does not assume any order of blocks.
// CBC solves it (Debian's coinor-cbc). Skipped if CBC is not installed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "planner/search/stack.h"
#include "tests/src/temporary_directory.h"

namespace stw {
namespace {

bool has_cbc() { return std::system("command -v cbc >/dev/null 2>&1") == 0; }

// Binary x(i, v): the i-th segment takes variant v. The tensors that earlier segments keep stay alive while
// it runs.
std::string program_of(const std::vector<SegmentRun>& runs, int64_t limit) {
  std::ostringstream objective, constraints, binaries;
  std::string kept;
  int segment = 0;
  for (const SegmentRun& s : runs)
    for (int64_t n = 0; n < s.count; ++n, ++segment) {
      std::string one, own, keeps;
      for (size_t v = 0; v < s.variants.size(); ++v) {
        const std::string x = "x" + std::to_string(segment) + "_" + std::to_string(v);
        objective << " + " << s.variants[v].picoseconds << ' ' << x;
        one += " + " + x;
        own += " + " + std::to_string(s.variants[v].peak) + " " + x;
        keeps += " + " + std::to_string(s.variants[v].kept) + " " + x;
        binaries << ' ' << x;
      }
      constraints << one << " = 1\n" << kept << own << " <= " << limit << "\n";
      kept += keeps;
    }
  return "Minimize\n" + objective.str() + "\nSubject To\n" + constraints.str() + "Binaries\n" +
         binaries.str() + "\nEnd\n";
}

// The optimum, or -1 if nothing fits.
double solved(const std::string& text, const TemporaryDirectory& folder) {
  put_file(folder / "stack.lp", text);
  const std::string command = "cbc " + (folder / "stack.lp") +
                              " ratioGap 0 allowableGap 0 sec 60 solve solution " + (folder / "solution") +
                              " >/dev/null 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream file(folder / "solution");
  std::string line;
  std::getline(file, line);
  if (line.starts_with("Infeasible") || line.starts_with("Integer infeasible")) return -1;
  EXPECT_TRUE(line.starts_with("Optimal")) << line;
  return std::stod(line.substr(line.rfind(' ')));
}

TEST(StackIlp, EqualsTheIntegerProgram) {
  if (!has_cbc()) GTEST_SKIP() << "cbc is not installed (Debian: coinor-cbc)";
  const TemporaryDirectory folder;
  std::mt19937 random(11);
  int infeasible = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<SegmentRun> runs;
    for (int part = 0; part <= round % 2; ++part) {
      SegmentRun s;
      s.count = 3 + static_cast<int64_t>(random() % 6);
      for (uint32_t v = 0; v < 6; ++v) {
        const int64_t kept = static_cast<int64_t>(random() % 50);
        s.variants.push_back({v, kept, kept + static_cast<int64_t>(random() % 60), random() % 1000});
      }
      runs.push_back(s);
    }
    runs.push_back({1,
                    {{1, 0, static_cast<int64_t>(random() % 80), 500},
                     {2, 0, static_cast<int64_t>(random() % 40), 900}}});
    std::vector<SegmentRun> normal = runs;
    for (SegmentRun& s : normal) normalise(s);
    const int64_t limit = smallest(normal).peak - 3 + static_cast<int64_t>(random() % 120);
    const StackAnswer answer = choose(normal, limit);
    const double expected = solved(program_of(runs, limit), folder);
    ASSERT_EQ(answer.choice.has_value(), expected >= 0) << round;
    infeasible += expected < 0;
    if (!answer.choice) continue;
    EXPECT_NEAR(static_cast<double>(answer.choice->picoseconds), expected, 0.01) << round;
  }
  EXPECT_LT(infeasible, 10);
}

}  // namespace
}  // namespace stw
