// The file of a reference (stw_dataset_options.reference): a float for each token of a dataset of pairs, and behind them of which tokens and marks
// they are, with a checksum.
#pragma once
#include <cstdint>
#include <string>

#include "planner/base/result.h"
#include "src/files/file.h"
#include "src/base/hash.h"

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

// A file whose first `count` floats are those. Errors: corrupt for what is none, or damaged; bad_state where it is of other tokens or marks.
Result<File> open_reference(const std::string& path, uint64_t count, uint64_t pairs);

}  // namespace stw
