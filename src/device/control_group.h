// The part of a machine that control groups (version 1 and 2) leave to this process. The limits of its own
// group and of all groups around it apply. Containers, batch systems and systemd's services set such limits.
#pragma once
#include <string>

#include "src/device/machine.h"

namespace stw {

class ControlGroups {
 public:
  // `groups`: the text of /proc/self/cgroup. `tree`: the folder of the groups, /sys/fs/cgroup.
  ControlGroups(std::string groups, std::string tree) : groups_(std::move(groups)), tree_(std::move(tree)) {}

  SystemMemory memory_within(const SystemMemory& machine) const;
  int processors_within(int processors) const;

 private:
  std::string groups_, tree_;
};

}  // namespace stw
