// What control groups leave of a machine to a process: those of version 2 and of version 1, its own group and all around it, as
// containers, batch systems and services of systemd have them.
#pragma once
#include <string>

#include "src/device/machine.h"

namespace stw {

class ControlGroups {
 public:
  // `groups`: what /proc/self/cgroup says. `tree`: where the groups are as folders, /sys/fs/cgroup.
  ControlGroups(std::string groups, std::string tree) : groups_(std::move(groups)), tree_(std::move(tree)) {}

  SystemMemory memory_within(const SystemMemory& machine) const;
  int processors_within(int processors) const;

 private:
  std::string groups_, tree_;
};

}  // namespace stw
