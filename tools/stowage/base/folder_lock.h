// Lets one process at a time write into a folder. It takes an advisory lock on the folder itself, which
// leaves no file and ends with the process. If the file system has no such locks, it makes the file
// .stowage-lock in the folder, with the host and process of the writer, and the command says so.
#pragma once
#include <string>

namespace command {

class FolderLock {
 public:
  // Throws a Failure if another process holds the lock. Takes over the lock file of a process of this host
  // that has ended. A lock file of another host counts as held.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;

 private:
  void make_file(const std::string& folder);

  int descriptor_;
  std::string file_;  // empty: no file was made
};

}  // namespace command
