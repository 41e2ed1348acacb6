#include "src/device/control_group.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/src/temporary_directory.h"

namespace stw::control_group_test {
namespace {

constexpr uint64_t gib = uint64_t{1} << 30;
constexpr SystemMemory machine{64 * gib, 50 * gib};

// Files of the kernel, in a folder that stands for /sys/fs/cgroup.
class Tree {
 public:
  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    put_file(file, text);
  }
  void memory(const std::string& group, const std::string& limit, uint64_t used, uint64_t cached = 0) {
    put(group + "/memory.max", limit + "\n");
    put(group + "/memory.current", std::to_string(used) + "\n");
    put(group + "/memory.stat", "anon 4096\ninactive_file " + std::to_string(cached / 2) + "\nactive_file " +
                                    std::to_string(cached - cached / 2) +
                                    "\nworkingset_refault_inactive_file 77\n");
  }
  SystemMemory memory_of(const std::string& groups) const {
    return ControlGroups(groups, folder_.path()).memory_within(machine);
  }
  int processors_of(const std::string& groups, int processors = 64) const {
    return ControlGroups(groups, folder_.path()).processors_within(processors);
  }

 private:
  TemporaryDirectory folder_;
};

void expect(const SystemMemory& found, uint64_t total, uint64_t available) {
  EXPECT_EQ(found.total, total);
  EXPECT_EQ(found.available, available);
}

TEST(ControlGroup, WithoutOneTheMachineDecides) {
  const Tree tree;
  for (const char* groups : {"", "0::/\n", "0::/a/b\n", "no line", "4:memory:/x\n", "::", "0::"}) {
    expect(tree.memory_of(groups), machine.total, machine.available);
    EXPECT_EQ(tree.processors_of(groups), 64) << groups;
  }
}

TEST(ControlGroup, MemoryIsTheRestOfTheLimit) {
  Tree tree;
  tree.memory(".", std::to_string(8 * gib), 3 * gib);  // a container's own group, at the top
  expect(tree.memory_of("0::/\n"), 8 * gib, 5 * gib);
  tree.memory(".", "max", 3 * gib);
  expect(tree.memory_of("0::/\n"), machine.total, machine.available);
  tree.memory(".", std::to_string(2 * gib), 3 * gib);
  expect(tree.memory_of("0::/\n"), 2 * gib, 0);
  tree.memory(".", std::to_string(60 * gib), 3 * gib);  // the machine has less available
  expect(tree.memory_of("0::/\n"), 60 * gib, machine.available);
}

TEST(ControlGroup, CopiesOfFilesMakeRoom) {
  Tree tree;
  tree.memory(".", std::to_string(8 * gib), 7 * gib, 6 * gib);
  expect(tree.memory_of("0::/\n"), 8 * gib, 7 * gib);
  // The cached bytes may exceed the used ones, because the two numbers are read at different times.
  tree.memory(".", std::to_string(8 * gib), 1 * gib, 6 * gib);
  expect(tree.memory_of("0::/\n"), 8 * gib, 8 * gib);
}

TEST(ControlGroup, MemoryOfAServiceOrAJobIsInAGroupBelow) {
  Tree tree;
  tree.memory("system.slice/job.service", std::to_string(4 * gib), 1 * gib);
  expect(tree.memory_of("0::/system.slice/job.service\n"), 4 * gib, 3 * gib);
  expect(tree.memory_of("0::/system.slice/other.service\n"), machine.total, machine.available);
  // The group around it has a larger limit, but less memory left, and so decides.
  tree.memory("system.slice", std::to_string(16 * gib), 15 * gib);
  expect(tree.memory_of("0::/system.slice/job.service\n"), 4 * gib, 1 * gib);
}

TEST(ControlGroup, MemoryOfVersion1) {
  Tree tree;
  const std::string groups = "5:cpuset:/\n4:hugetlb,memory:/slurm/job\n0::/\n";
  tree.put("memory/slurm/job/memory.limit_in_bytes", std::to_string(4 * gib));
  tree.put("memory/slurm/job/memory.usage_in_bytes", std::to_string(3 * gib));
  tree.put("memory/slurm/job/memory.stat", "inactive_file 1\ntotal_inactive_file " + std::to_string(gib) +
                                               "\ntotal_active_file " + std::to_string(gib) + "\n");
  tree.put("memory/memory.limit_in_bytes", "9223372036854771712\n");
  tree.put("memory/memory.usage_in_bytes", std::to_string(20 * gib));
  expect(tree.memory_of(groups), 4 * gib, 3 * gib);
  expect(tree.memory_of("4:hugetlb,memory:/elsewhere\n"), machine.total, machine.available);
  // A container sees its own group as the top of the tree, but its path is the one on the host.
  tree.put("memory/memory.limit_in_bytes", std::to_string(2 * gib));
  tree.put("memory/memory.usage_in_bytes", std::to_string(gib));
  expect(tree.memory_of("4:memory:/docker/0123\n"), 2 * gib, 1 * gib);
  expect(tree.memory_of("4:memory:/../../slurm/job\n"), 2 * gib, 1 * gib);
}

TEST(ControlGroup, ProcessorsComeFromTheQuota) {
  Tree tree;
  const auto with = [&](const char* quota, int processors) {
    tree.put("cpu.max", quota);
    return tree.processors_of("0::/\n", processors);
  };
  EXPECT_EQ(with("200000 100000\n", 64), 2);
  EXPECT_EQ(with("150000 100000\n", 64), 2);
  EXPECT_EQ(with("20000 100000\n", 64), 1);
  EXPECT_EQ(with("800000 100000\n", 4), 4);
  for (const char* none : {"", "max 100000\n", "max", "100000", "1 0", "words", "-1 100000"})
    EXPECT_EQ(with(none, 3), 3) << none;
}

TEST(ControlGroup, ProcessorsOfAGroupBelowAndOfVersion1) {
  Tree tree;
  tree.put("user.slice/job/cpu.max", "300000 100000\n");
  EXPECT_EQ(tree.processors_of("0::/user.slice/job\n"), 3);
  EXPECT_EQ(tree.processors_of("0::/user.slice\n"), 64);
  tree.put("cpu/slurm/cpu.cfs_quota_us", "-1\n");
  tree.put("cpu/slurm/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(tree.processors_of("3:cpu,cpuacct:/slurm/job\n"), 64);
  tree.put("cpu/slurm/cpu.cfs_quota_us", "500000\n");
  EXPECT_EQ(tree.processors_of("3:cpu,cpuacct:/slurm/job\n"), 5);
}

}  // namespace
}  // namespace stw::control_group_test
