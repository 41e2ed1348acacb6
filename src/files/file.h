// Files: exact reads at an offset, and writes that replace a file only when complete. Every error names the file.
//
// Paths are the caller's, as bytes. Nothing here maps a file or loads a whole one, except `read_text`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/result.h"

namespace stw {

// "PATH: ACTION: text of errno". Code io_error, or host_out_of_memory where errno is ENOMEM.
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
  // Closes and returns errno or 0: a delayed write error may surface here.
  int close();

 private:
  int value_ = -1;
};

// A regular file open for reading. Const methods may run on several threads at once.
class File {
 public:
  static Result<File> open(const std::string& path);
  const std::string& path() const { return path_; }
  // In bytes, as found when the file was opened.
  uint64_t size() const { return size_; }
  // Exactly `bytes` bytes from `offset`. Errors: io_error, also where the file ends before (expected and found size).
  Status read(uint64_t offset, void* data, uint64_t bytes) const;

 private:
  File(std::string path, Descriptor descriptor, uint64_t size)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), size_(size) {}
  std::string path_;
  Descriptor descriptor_;
  uint64_t size_;
};

// Writes PATH.tmp.<process>.<n> beside PATH; `finish` makes it durable and renames it to PATH. A kill at any moment
// leaves the old or the new file, complete; at worst the temporary file stays behind. Without `finish`, also after an
// error, the destructor removes the temporary file and PATH is untouched. Who may read and write the old file may the
// new one. A symbolic link stays, and all this is said of the file that it leads to. What is no regular file, a pipe or a device,
// is written to as it is.
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
  FileWriter(std::string path, std::string target, std::string temporary, Descriptor descriptor, std::unique_ptr<std::byte[]> buffer)
      : path_(std::move(path)), target_(std::move(target)), temporary_(std::move(temporary)), descriptor_(std::move(descriptor)),
        buffer_(std::move(buffer)) {}
  Status write_through(const std::byte* data, uint64_t bytes);

  std::string path_;
  std::string target_;     // that `temporary_` becomes: where links lead from `path_`
  std::string temporary_;  // empty once renamed, and where it is written in place
  Descriptor descriptor_;  // open until it is finished
  std::unique_ptr<std::byte[]> buffer_;
  uint64_t buffered_ = 0;
};

bool file_exists(const std::string& path);
bool is_directory(const std::string& path);
// Without links and dots; as it was given where the system cannot say.
std::string absolute_path(const std::string& path);
// The names of a folder's files that end like this, sorted. Errors: io_error.
Result<std::vector<std::string>> files_in(const std::string& folder, std::string_view ending);
// With all parents; fine where it is there already.
Status make_directories(const std::string& path);
// Whole files, for small text. Errors: io_error; corrupt where the file is larger than `limit`.
Result<std::string> read_text(const std::string& path, uint64_t limit);
// The start, at most 16 KiB, of a file of the kernel's, which says that it has no bytes; empty where there is none.
std::string kernel_text(const std::string& path);
Status write_text(const std::string& path, std::string_view text);

}  // namespace stw
