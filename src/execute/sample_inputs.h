// The inputs of a program, filled sample by sample.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "src/execute/execute.h"
#include "src/execute/sample_rows.h"
#include "src/device/stream.h"

namespace stw {

// Writes the tokens and targets of one sample, and what else there is, over what `rows` holds.
using SampleSource = std::function<Status(uint64_t sample, const SampleRows& rows)>;

// Sources write into the arena, or where the host cannot, into memory beside it that is taken once.
class SampleInputs {
 public:
  // For all programs that samples are loaded for.
  void reserve(const Programs& programs, const Execution& execution, const Stream& stream);
  // From consecutive samples; those past `samples` are ignored ones. Errors: the source's; some rows have been written then.
  Status load(const Program& program, const Execution& execution, Stream& stream, const SampleSource& source, uint64_t first, uint64_t samples);

 private:
  std::vector<std::byte> staged_;   // empty: sources write into the arena
};

}  // namespace stw
