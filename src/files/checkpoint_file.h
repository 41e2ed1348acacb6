// A checkpoint file: a JSON header of the caller, and named sections of bytes.
//
//   magic 8 | version u32 | zero u32 | header_bytes u64 | header JSON | hash u64 of all of these
//   sections, one after the other, without gaps
//   hash u64 of each section | hash u64 of all hashes before: the header's and the sections'
//
// Numbers are little-endian, hashes XXH3-64. FileWriter writes the file, so that a kill at any moment leaves
// the old or the new file complete. Every byte is hashed, and the size follows from the header. A flipped bit
// and a missing or added byte are therefore found: in header and table at `open`, in a section when it is
// read to its end, or by `verify_all`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/base/json.h"
#include "planner/base/result.h"
#include "src/base/hash.h"
#include "src/files/file.h"

namespace stw {

inline constexpr uint32_t checkpoint_version = 2;

struct CheckpointSection {
  std::string name;  // unique
  uint64_t bytes;
};

class CheckpointWriter {
 public:
  // `fields`: a JSON object that the reader returns. Errors: bad_argument (a name twice, sizes too large),
  // io_error.
  static Result<CheckpointWriter> create(const std::string& path, const Json& fields,
                                         std::vector<CheckpointSection> sections);
  // Writes bytes of the current section, in pieces of any size. A piece must not cross the section's end; the
  // piece after the end begins the next section. Errors: bad_argument where a piece crosses the end,
  // io_error.
  Status write(std::span<const std::byte> data);
  // Errors: bad_state where a section is not complete, io_error.
  Status finish();

 private:
  CheckpointWriter(FileWriter writer, std::vector<CheckpointSection> sections, uint64_t header_hash)
      : writer_(std::move(writer)), sections_(std::move(sections)), hashes_{header_hash} {}
  void close_full_sections();

  FileWriter writer_;
  std::vector<CheckpointSection> sections_;
  std::vector<uint64_t> hashes_;  // of the header, then of the complete sections
  Hash64 hash_;                   // of the current section
  uint64_t written_ = 0;          // bytes of the current section
};

class CheckpointReader;

// Reads one section in order. The call that reaches the end verifies the checksum and fails with `corrupt` if
// it differs. None of the section's bytes may be trusted before. Borrows the reader, which must not move.
class CheckpointSectionReader {
 public:
  uint64_t remaining() const { return end_ - position_; }
  // Errors: bad_argument past the end, io_error, corrupt.
  Status read(std::span<std::byte> out);

 private:
  friend class CheckpointReader;
  CheckpointSectionReader(const CheckpointReader* reader, size_t index, uint64_t position, uint64_t end)
      : reader_(reader), index_(index), position_(position), end_(end) {}
  Status check() const;

  const CheckpointReader* reader_;
  size_t index_;
  uint64_t position_, end_;  // in the file
  Hash64 hash_;
};

// Const methods may run on several threads at once.
class CheckpointReader {
 public:
  // Verifies magic, version, header, sizes and the table of hashes. Errors: io_error; unsupported (another
  // version); corrupt (everything else; the message has file, field, expected and found values).
  static Result<CheckpointReader> open(const std::string& path);
  const std::string& path() const { return file_.path(); }
  const Json& fields() const { return fields_; }
  const std::vector<CheckpointSection>& sections() const { return sections_; }
  // Null where there is no such section.
  const CheckpointSection* find(std::string_view name) const;
  // Errors: corrupt where there is no such section, or its size is not `bytes`.
  Result<CheckpointSectionReader> section(std::string_view name, uint64_t bytes) const;
  // Reads every section once and compares its checksum. Needs one small buffer. Errors: io_error, corrupt.
  Status verify_all() const;

 private:
  friend class CheckpointSectionReader;
  explicit CheckpointReader(File file) : file_(std::move(file)) {}
  CheckpointSectionReader section_at(size_t index) const;

  File file_;
  Json fields_;
  std::vector<CheckpointSection> sections_;
  std::vector<uint64_t> offsets_;  // of the sections in the file, and the end of the last one
  std::vector<uint64_t> hashes_;   // of the header, then of the sections
};

}  // namespace stw
