#include "src/files/file.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace stw {
namespace {

// Repeats a call that a signal interrupted.
template <class Call>
auto repeated(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

constexpr uint64_t buffer_bytes = uint64_t{1} << 20;
// Limit of one read or write; the kernel's is just below 2 GiB.
constexpr uint64_t call_bytes = uint64_t{1} << 30;

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Makes a rename durable. File systems that cannot sync a directory answer EINVAL. A process may be allowed
// to write into a directory but not to open it. Both are accepted.
Status sync_directory(const std::string& directory) {
  Descriptor descriptor(
      repeated([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (descriptor.get() < 0 && errno == EACCES) return ok();
  if (descriptor.get() < 0) return file_error(directory, "cannot open the folder", errno);
  if (repeated([&] { return ::fsync(descriptor.get()); }) != 0 && errno != EINVAL)
    return file_error(directory, "cannot sync the folder", errno);
  return ok();
}

// Follows symbolic links. The last one may point to a file that does not exist yet.
Result<std::string> follow_links(const std::string& path) {
  std::string at = path;
  for (int links = 0; links < 40; ++links) {
    char text[PATH_MAX];
    const ssize_t length = ::readlink(at.c_str(), text, sizeof text);
    if (length < 0) return at;  // not a link, or no such file; creating it then reports errors
    const std::string next(text, static_cast<size_t>(length));
    at = next.starts_with('/') ? next : directory_of(at) + "/" + next;
  }
  return file_error(path, "cannot follow", ELOOP);
}

// While it lives, a pipe without a reader (EPIPE) and a file over its size limit (EFBIG) are errors of the
// write. Their signals, which are sent to the writing thread, would end the host.
class WriteSignalsBlocked {
 public:
  WriteSignalsBlocked() {
    sigset_t pending;
    sigpending(&pending);
    sigemptyset(&ours_);
    for (const int signal : {SIGPIPE, SIGXFSZ})
      if (sigismember(&pending, signal) == 0) sigaddset(&ours_, signal);
    pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  }
  ~WriteSignalsBlocked() {
    const timespec at_once{};
    sigtimedwait(&ours_, nullptr, &at_once);  // at most one is pending: no write follows a failed one
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WriteSignalsBlocked(const WriteSignalsBlocked&) = delete;

 private:
  sigset_t ours_, before_;  // ours_ excludes signals that were pending before, which are the host's
};

}  // namespace

Error file_error(const std::string& path, std::string_view action, int error_number) {
  const Code code = error_number == ENOMEM ? Code::host_out_of_memory : Code::io_error;
  return {code, path + ": " + std::string(action) + ": " + std::generic_category().message(error_number),
          error_number};
}

Error corrupt(const std::string& path, const std::string& message) {
  return {Code::corrupt, path + ": " + message};
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    value_ = std::exchange(other.value_, -1);
  }
  return *this;
}

Descriptor::~Descriptor() { close(); }

int Descriptor::close() {
  if (value_ < 0) return 0;
  // Not repeated on EINTR: Linux has released the descriptor by then.
  return ::close(std::exchange(value_, -1)) == 0 || errno == EINTR ? 0 : errno;
}

Result<File> File::open(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  Descriptor descriptor(repeated([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  if (descriptor.get() < 0) return file_error(path, "cannot open", errno);
  struct stat status;
  if (::fstat(descriptor.get(), &status) != 0) return file_error(path, "cannot read its size", errno);
  if (S_ISDIR(status.st_mode)) return file_error(path, "expected a file", EISDIR);
  if (!S_ISREG(status.st_mode)) return Error{Code::io_error, path + ": expected a regular file"};
  return File(path, std::move(descriptor), static_cast<uint64_t>(status.st_size));
}

uint64_t File::end_of_hole(uint64_t offset) const {
  const off_t data = ::lseek(descriptor_.get(), static_cast<off_t>(offset), SEEK_DATA);
  if (data >= 0) return static_cast<uint64_t>(data);
  return errno == ENXIO && offset < size_ ? size_ - 1 : offset;
}

Status File::read(uint64_t offset, void* data, uint64_t bytes) const {
  auto* out = static_cast<char*>(data);
  uint64_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(descriptor_.get(), out + done, std::min(bytes - done, call_bytes),
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return file_error(path_, "cannot read " + std::to_string(bytes) + " bytes at " + std::to_string(offset),
                        errno);
    if (got == 0)
      return Error{Code::io_error, path_ + ": ends early: expected " + std::to_string(bytes) + " bytes at " +
                                       std::to_string(offset) + ", found " + std::to_string(done)};
    done += static_cast<uint64_t>(got);
  }
  return ok();
}

Result<FileWriter> FileWriter::create(const std::string& path) {
  // All memory is allocated before the file exists, so that no failure leaves a file without an owner.
  auto buffer = std::make_unique_for_overwrite<std::byte[]>(buffer_bytes);
  std::string caller = path;
  struct stat status;
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    // Opening a folder fails with EISDIR. Opening a pipe waits for its reader.
    Descriptor descriptor(repeated([&] { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY); }));
    if (descriptor.get() < 0) return file_error(path, "cannot open", errno);
    return FileWriter(std::move(caller), {}, {}, std::move(descriptor), std::move(buffer));
  }
  STW_ASSIGN(target, follow_links(path));
  const std::string prefix = target + ".tmp." + std::to_string(::getpid()) + ".";
  const mode_t mode = exists ? status.st_mode & 0777 : 0666;
  // A name may be taken by another writer of this process, or by a killed process with the same number.
  for (int attempt = 0; attempt < 10000; ++attempt) {
    std::string temporary = prefix + std::to_string(attempt);
    Descriptor descriptor(repeated(
        [&] { return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0666); }));
    if (descriptor.get() >= 0) {
      // The mode does not depend on the umask. Errors are ignored: some file systems have no modes.
      if (exists) ::fchmod(descriptor.get(), mode);
      return FileWriter(std::move(caller), std::move(target), std::move(temporary), std::move(descriptor),
                        std::move(buffer));
    }
    if (errno != EEXIST) return file_error(path, "cannot create", errno);
  }
  return file_error(path, "cannot create", EEXIST);
}

FileWriter::~FileWriter() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status FileWriter::write_through(const std::byte* data, uint64_t bytes) {
  const WriteSignalsBlocked blocked;
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_.get(), data, std::min(bytes, call_bytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error(path_, "cannot write", errno);
    data += written;
    bytes -= static_cast<uint64_t>(written);
  }
  return ok();
}

Status FileWriter::write(const void* data, uint64_t bytes) {
  if (descriptor_.get() < 0) return Error{Code::bad_state, path_ + ": written after it was finished"};
  const auto* bytes_in = static_cast<const std::byte*>(data);
  if (bytes > buffer_bytes - buffered_) {
    STW_TRY(write_through(buffer_.get(), buffered_));
    buffered_ = 0;
  }
  if (bytes >= buffer_bytes) return write_through(bytes_in, bytes);
  if (bytes > 0) std::memcpy(buffer_.get() + buffered_, bytes_in, bytes);
  buffered_ += bytes;
  return ok();
}

Status FileWriter::finish() {
  if (descriptor_.get() < 0) return Error{Code::bad_state, path_ + ": finished twice"};
  STW_TRY(write_through(buffer_.get(), std::exchange(buffered_, 0)));
  const bool in_place = temporary_.empty();
  // A pipe cannot be synced and answers EINVAL.
  if (repeated([&] { return ::fsync(descriptor_.get()); }) != 0 && !(in_place && errno == EINVAL))
    return file_error(path_, "cannot sync", errno);
  if (const int error_number = descriptor_.close()) return file_error(path_, "cannot close", error_number);
  if (in_place) return ok();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    return file_error(path_, "cannot replace it by " + temporary_, errno);
  temporary_.clear();
  return sync_directory(directory_of(target_));
}

bool file_exists(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

bool is_directory(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path found = std::filesystem::canonical(path, error);
  return error ? path : found.string();
}

Result<std::vector<std::string>> files_in(const std::string& folder, std::string_view ending) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (std::string name = at->path().filename().string();
        name.ends_with(ending) && file_exists(folder + "/" + name))
      names.push_back(std::move(name));
  if (error) return file_error(folder, "cannot read the folder", error.value());
  std::sort(names.begin(), names.end());
  return names;
}

Status make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return file_error(path, "cannot create the folder", error.value());
  if (!is_directory(path)) return file_error(path, "cannot create the folder", ENOTDIR);
  return ok();
}

Result<std::string> read_text(const std::string& path, uint64_t limit) {
  STW_ASSIGN(file, File::open(path));
  if (file.size() > limit)
    return Error{Code::corrupt, path + ": expected at most " + std::to_string(limit) + " bytes, found " +
                                    std::to_string(file.size())};
  std::string text(file.size(), '\0');
  STW_TRY(file.read(0, text.data(), text.size()));
  return text;
}

std::string kernel_text(const std::string& path) {
  std::string text(16384, 0);
  const Descriptor file(repeated([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  const ssize_t n =
      file.get() < 0 ? 0 : repeated([&] { return ::read(file.get(), text.data(), text.size()); });
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

Status write_text(const std::string& path, std::string_view text) {
  STW_ASSIGN(writer, FileWriter::create(path));
  STW_TRY(writer.write(text.data(), text.size()));
  return writer.finish();
}

}  // namespace stw
