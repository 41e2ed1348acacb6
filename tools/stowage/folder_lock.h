// One writer a folder: an advisory lock on the folder itself, which leaves no file behind and ends with the process.
#pragma once
#include <string>

namespace command {

class FolderLock {
 public:
  // Throws where another process holds it. A file system that knows no such locks is trusted.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace command
