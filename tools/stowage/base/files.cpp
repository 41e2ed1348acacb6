#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/failure.h"
#include "base/repeated.h"

namespace command {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  const int value_;
};

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw Failure(exit_failed, fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

// Limit for pipes and devices, which may have no end. Regular files have no limit, because their size is
// known.
constexpr size_t endless_limit = size_t{256} << 20;  // bytes

// Makes a rename durable. A folder that can be written to may not be readable, and some file systems cannot
// sync folders (EINVAL).
void sync_folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
  const int descriptor = repeated([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0 && errno == EACCES) return;
  if (descriptor < 0) fail(folder, "cannot open the folder");
  const int error = repeated([&] { return ::fsync(descriptor); }) == 0 ? 0 : errno;
  ::close(descriptor);
  if (error == 0 || error == EINVAL) return;
  errno = error;
  fail(folder, "cannot sync the folder");
}

// Empty if there is no such file.
std::optional<std::string> read_bytes(const std::string& path, bool only_regular) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const Descriptor file(repeated([&] {
    return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | (only_regular ? O_NONBLOCK : 0));
  }));
  if (file.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    fail(path, "cannot read");
  }
  struct stat status;
  const bool is_known = ::fstat(file.get(), &status) == 0, has_size = is_known && S_ISREG(status.st_mode);
  if (only_regular && is_known && !has_size && !S_ISDIR(status.st_mode))
    throw Failure(exit_failed,
                  fmt::format("{}: expected a regular file, found a pipe, a socket or a device", path));
  std::string text;
  char chunk[65536];
  while (true) {
    const ssize_t count = repeated([&] { return ::read(file.get(), chunk, sizeof chunk); });
    if (count < 0) fail(path, "cannot read");
    if (count == 0) return text;
    text.append(chunk, static_cast<size_t>(count));
    if (!has_size && text.size() > endless_limit)
      throw Failure(exit_failed,
                    fmt::format("{}: is not a regular file: expected at most {} bytes from it, found more",
                                path, endless_limit));
  }
}

}  // namespace

std::optional<std::string> read_text_if_there(const std::string& path) { return read_bytes(path, true); }

std::string read_text(const std::string& path) {
  auto text = read_bytes(path, false);
  if (!text) fail(path, "cannot read");
  return std::move(*text);
}

std::string beginning_of(const std::string& path, size_t bytes) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  const Descriptor file(repeated([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  std::string text(bytes, '\0');
  const ssize_t count =
      file.get() < 0 ? 0 : repeated([&] { return ::read(file.get(), text.data(), text.size()); });
  text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string checksum_of(std::string_view text) { return fmt::format("{:016x}", hash_of(text)); }

bool may_be_json(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return true;
  const std::string text = beginning_of(path, 4096);  // errors are reported when the file is read
  const auto first = std::find_if_not(text.begin(), text.end(),
                                      [](char c) { return std::isspace(static_cast<unsigned char>(c)); });
  return first == text.end() ? text.size() == 4096 : *first == '{';
}

void write_text(const std::string& path, std::string_view text) {
  // A symbolic link stays, and its target is replaced. Devices and pipes are written to.
  struct stat status;
  const bool there = ::stat(path.c_str(), &status) == 0;
  if (there && !S_ISREG(status.st_mode)) {
    const File file(open_file(path.c_str(), "wb"));  // fails for a folder, as it should
    if (!file || write_all(text, file.get()) != text.size() ||
        repeated([&] { return std::fflush(file.get()); }) != 0)
      fail(path, "cannot write");
    return;
  }
  std::string target = path;
  if (there)
    if (const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
        real)
      target = real.get();
  // The name must be unused: a file of that name next to the target may belong to another program.
  const std::string prefix = fmt::format("{}.tmp.{}.", target, ::getpid());
  std::string temporary = prefix + "0";
  int descriptor = -1;
  for (int attempt = 1; (descriptor = repeated([&] {
                           return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
                         })) < 0 &&
                        errno == EEXIST && attempt < 10000;
       ++attempt)
    temporary = fmt::format("{}{}", prefix, attempt);
  if (descriptor < 0) fail(path, "cannot create");
  if (there) ::fchmod(descriptor, status.st_mode & 0777);  // the new file has the permissions of the old one
  int error = 0;
  for (std::string_view rest = text; !rest.empty() && error == 0;) {
    const ssize_t written = ::write(descriptor, rest.data(), std::min(rest.size(), size_t{1} << 30));
    if (written >= 0) rest.remove_prefix(static_cast<size_t>(written));
    else if (errno != EINTR) error = errno;
  }
  if (error == 0 && repeated([&] { return ::fsync(descriptor); }) != 0) error = errno;
  if (::close(descriptor) != 0 && error == 0 && errno != EINTR) error = errno;
  if (error == 0 && std::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return sync_folder_of(target);
  ::unlink(temporary.c_str());
  errno = error;
  fail(path, "cannot write");
}

int made_file(std::string& name) {
  const std::string pattern = name;
  return repeated([&] {
    name = pattern;
    return ::mkstemp(name.data());
  });
}

bool is_named(const std::string& path, std::string_view suffix) {
  return path.size() >= suffix.size() &&
         std::equal(suffix.begin(), suffix.end(), path.end() - static_cast<ptrdiff_t>(suffix.size()),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
}

bool is_folder(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_there(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0;
}

bool is_same(const std::string& one, const std::string& other) {
  struct stat first, second;
  return ::stat(one.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool may_be_read_again(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
}

uint64_t file_bytes(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) fail(path, "cannot read");
  return static_cast<uint64_t>(status.st_size);
}

}  // namespace command
