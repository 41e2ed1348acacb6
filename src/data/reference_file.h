// Reference files (stw_dataset_options.reference): a float for each token of a dataset of pairs, followed by
// a record with a checksum and with a hash of the pairs' tokens and marks.
#pragma once
#include <cstdint>
#include <string>

#include "planner/base/result.h"
#include "src/base/hash.h"
#include "src/files/file.h"

namespace stw {

class ReferenceWriter {
 public:
  // `pairs`: the hash of tokens and marks.
  static Result<ReferenceWriter> create(const std::string& path, uint64_t pairs);
  Status write(float log_probability);
  Status finish();

 private:
  ReferenceWriter(FileWriter writer, uint64_t pairs) : writer_(std::move(writer)), pairs_(pairs) {}
  FileWriter writer_;
  Hash64 values_;
  uint64_t pairs_, count_ = 0;
};

// Opens a reference file; its first `count` floats are the log-probabilities. Errors: corrupt where it is no
// reference file, or damaged; bad_state where it belongs to other tokens or marks.
Result<File> open_reference(const std::string& path, uint64_t count, uint64_t pairs);

}  // namespace stw
