// Files: exact reads at an offset, and writes that replace a file only when they are complete. Every error
// names the file.
//
// Paths are bytes from the caller. No file is mapped, and only `read_text` loads a whole one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/result.h"

namespace stw {

// "PATH: ACTION: text of errno". Code io_error, or host_out_of_memory for ENOMEM.
Error file_error(const std::string& path, std::string_view action, int error_number);
// "PATH: MESSAGE", code corrupt.
Error corrupt(const std::string& path, const std::string& message);

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return value_; }
  // Closes the file and returns errno or 0. A delayed write error may surface here.
  int close();

 private:
  int value_ = -1;
};

// A regular file open for reading. Const methods may run on several threads at once.
class File {
 public:
  static Result<File> open(const std::string& path);
  const std::string& path() const { return path_; }
  // In bytes, at the time of opening.
  uint64_t size() const { return size_; }
  // Reads exactly `bytes` bytes from `offset`. Errors: io_error, also for a file that ends early. The message
  // then has the expected and the found number of bytes.
  Status read(uint64_t offset, void* data, uint64_t bytes) const;
  // The end of the hole at `offset`, whose bytes read as zeros; `offset` where there is none, or the file
  // system does not know. A hole ends at the last byte of the file, if not before.
  uint64_t end_of_hole(uint64_t offset) const;

 private:
  File(std::string path, Descriptor descriptor, uint64_t size)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), size_(size) {}
  std::string path_;
  Descriptor descriptor_;
  uint64_t size_;
};

// Writes PATH.tmp.<process>.<n> next to PATH. `finish` makes it durable and renames it to PATH. A kill at any
// moment leaves the old or the new file complete; at worst the temporary file remains. Without `finish`, also
// after an error, the destructor removes the temporary file, and PATH is unchanged. The new file has the old
// one's permissions. A symbolic link stays, and its target is replaced. Pipes, devices and other special
// files are written directly.
class FileWriter {
 public:
  static Result<FileWriter> create(const std::string& path);
  FileWriter(FileWriter&&) noexcept = default;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();
  const std::string& path() const { return path_; }
  Status write(const void* data, uint64_t bytes);
  Status finish();

 private:
  FileWriter(std::string path, std::string target, std::string temporary, Descriptor descriptor,
             std::unique_ptr<std::byte[]> buffer)
      : path_(std::move(path)),
        target_(std::move(target)),
        temporary_(std::move(temporary)),
        descriptor_(std::move(descriptor)),
        buffer_(std::move(buffer)) {}
  Status write_through(const std::byte* data, uint64_t bytes);

  std::string path_;
  std::string target_;     // the final name: `path_` with links followed
  std::string temporary_;  // empty once renamed, and for direct writes
  Descriptor descriptor_;  // open until `finish`
  std::unique_ptr<std::byte[]> buffer_;
  uint64_t buffered_ = 0;
};

bool file_exists(const std::string& path);
bool is_directory(const std::string& path);
// The path without links and dots; unchanged where the system cannot resolve it.
std::string absolute_path(const std::string& path);
// The names of a folder's files with this ending, sorted. Errors: io_error.
Result<std::vector<std::string>> files_in(const std::string& folder, std::string_view ending);
// Makes all parents too. An existing folder is no error.
Status make_directories(const std::string& path);
// Reads a whole small text file. Errors: io_error; corrupt where the file is larger than `limit`.
Result<std::string> read_text(const std::string& path, uint64_t limit);
// The first 16 KiB of a file of the kernel, in /proc or /sys (their reported size is 0); empty where there is
// no file.
std::string kernel_text(const std::string& path);
Status write_text(const std::string& path, std::string_view text);

}  // namespace stw
