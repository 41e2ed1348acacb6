#include "folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "failure.h"

namespace command {

namespace {

// Again where a signal came in between.
template <class Call>
int repeated(const Call& call) {
  int result;
  do result = call();
  while (result < 0 && errno == EINTR);
  return result;
}

// That there is nothing to lock, or nothing to lock it with: a folder that is not there, or may be written to but not read.
bool is_no_folder_to_lock(int error) { return error == ENOENT || error == EACCES; }

// That the file system has no such locks. NFS wants a file open for writing (EBADF), which no folder is.
bool has_no_locks(int error) {
  return error == ENOLCK || error == EOPNOTSUPP || error == ENOTSUP || error == ENOSYS || error == ENOTTY || error == EINVAL || error == EBADF;
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) : descriptor_(repeated([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); })) {
  if (descriptor_ < 0 && is_no_folder_to_lock(errno)) return;
  if (descriptor_ < 0) throw Failure(exit_failed, fmt::format("{}: cannot open the folder: {}", folder, std::strerror(errno)));
  if (repeated([&] { return ::flock(descriptor_, LOCK_EX | LOCK_NB); }) == 0 || has_no_locks(errno)) return;
  const int error = errno;
  ::close(descriptor_);
  if (error == EWOULDBLOCK) throw Failure(exit_failed, fmt::format("{}: another run is writing into this folder; wait for its end, or give another --out", folder));
  throw Failure(exit_failed, fmt::format("{}: cannot lock the folder: {}", folder, std::strerror(error)));
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace command
