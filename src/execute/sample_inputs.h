// Fills the inputs of a program, sample by sample.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "src/device/stream.h"
#include "src/execute/execute.h"
#include "src/execute/sample_rows.h"

namespace stw {

// Writes one sample to `rows`, which hold the defaults. A source must write tokens and targets; all others
// are optional.
using SampleSource = std::function<Status(uint64_t sample, const SampleRows& rows)>;

// Sources write into the arena. If the host cannot write there, they write into host memory that is allocated
// once.
class SampleInputs {
 public:
  // Allocates for all programs that load samples.
  void reserve(const Programs& programs, const Execution& execution, const Stream& stream);
  // Loads consecutive samples, from number `first` on. All targets of samples with numbers of at least
  // `samples` are ignored. Errors: those of `source`; some rows may have been written by then.
  Status load(const Program& program, const Execution& execution, Stream& stream, const SampleSource& source,
              uint64_t first, uint64_t samples);

 private:
  std::vector<std::byte> staged_;  // empty: sources write into the arena
};

}  // namespace stw
