// One writer a folder: an advisory lock on the folder itself, which leaves no file behind and ends with the process. Where the file system has no
// such locks, a file in the folder, .stowage-lock, with the writer's host and process; the command says so.
#pragma once
#include <string>

namespace command {

class FolderLock {
 public:
  // Throws where another process holds it. The file of a process of this host that is no more is taken over; of another host nothing is known.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;

 private:
  void make_file(const std::string& folder);

  int descriptor_;
  std::string file_;   // empty: there is none
};

}  // namespace command
