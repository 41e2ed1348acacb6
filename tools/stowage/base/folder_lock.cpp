#include "base/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/failure.h"
#include "base/files.h"
#include "base/messages.h"
#include "base/repeated.h"
#include "base/utf8.h"

namespace command {

namespace {

// Whether the error means that the folder does not exist, or can be written to but not read.
bool is_no_folder_to_lock(int error) { return error == ENOENT || error == EACCES; }

// Whether the error means that the file system has no such locks. NFS locks only files that are open for
// writing (EBADF), and a folder cannot be.
bool has_no_locks(int error) {
  return error == ENOLCK || error == EOPNOTSUPP || error == ENOTSUP || error == ENOSYS || error == ENOTTY ||
         error == EINVAL || error == EBADF;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] ? name : "unknown";
}

// Whether a lock file belongs to a process of this host that has ended.
bool is_gone(const std::string& holder) {
  const std::string host = host_name() + " ";
  pid_t process = 0;
  if (!holder.starts_with(host)) return false;
  const auto [end, problem] =
      std::from_chars(holder.data() + host.size(), holder.data() + holder.size(), process);
  return problem == std::errc() && process > 0 &&
         (process == ::getpid() || (::kill(process, 0) != 0 && errno == ESRCH));
}

}  // namespace

FolderLock::FolderLock(const std::string& folder)
    : descriptor_(repeated([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); })) {
  if (descriptor_ < 0 && is_no_folder_to_lock(errno)) return;
  if (descriptor_ < 0)
    throw Failure(exit_failed, fmt::format("{}: cannot open the folder: {}", folder, std::strerror(errno)));
  if (repeated([&] { return ::flock(descriptor_, LOCK_EX | LOCK_NB); }) == 0) return;
  const int error = errno;
  ::close(std::exchange(descriptor_, -1));
  if (has_no_locks(error)) {
    make_file(folder);
    return;
  }
  if (error == EWOULDBLOCK)
    throw Failure(
        exit_failed,
        fmt::format("{}: another run is writing into this folder; wait for its end, or give another --out",
                    folder));
  throw Failure(exit_failed, fmt::format("{}: cannot lock the folder: {}", folder, std::strerror(error)));
}

void FolderLock::make_file(const std::string& folder) {
  const std::string file = folder + "/.stowage-lock",
                    content = fmt::format("{} {}\n", host_name(), ::getpid());
  for (int attempt = 0; attempt < 2; ++attempt) {
    const int descriptor =
        repeated([&] { return ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
    if (descriptor >= 0) {
      const bool is_written = repeated([&] { return ::write(descriptor, content.data(), content.size()); }) ==
                              static_cast<ssize_t>(content.size());
      const int error = errno;
      ::close(descriptor);
      if (!is_written) {
        ::unlink(file.c_str());
        throw Failure(exit_failed, fmt::format("{}: cannot write: {}", file, std::strerror(error)));
      }
      file_ = file;
      complain("stowage: note: {}: its file system has no locks: the file {} keeps other runs out", folder,
               file);
      return;
    }
    if (errno != EEXIST)
      throw Failure(exit_failed, fmt::format("{}: cannot create: {}", file, std::strerror(errno)));
    const std::string holder = read_text_if_there(file).value_or("");
    if (!is_gone(holder))
      throw Failure(
          exit_failed,
          fmt::format("{}: another run is writing into this folder, according to {} ({}); wait for its end, "
                      "give another --out, or remove that file if the run has ended",
                      folder, file, shortened(std::string_view(holder).substr(0, holder.find('\n')))));
    ::unlink(file.c_str());
  }
  throw Failure(
      exit_failed,
      fmt::format("{}: another run is writing into this folder; wait for its end, or give another --out",
                  folder));
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!file_.empty()) ::unlink(file_.c_str());
}

}  // namespace command
