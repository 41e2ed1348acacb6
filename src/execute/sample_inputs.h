// Fills the inputs of a program, sample by sample.
#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "src/device/stream.h"
#include "src/execute/execute.h"
#include "src/execute/sample_rows.h"

namespace stw {

// Writes one sample to `rows`, which hold the defaults. With Graph::texts, only the first rows of the first
// texts may have a target.
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
  // With Graph::texts: the input text_rows of a sample of the last load.
  std::span<int32_t> text_rows(uint64_t sample, const Graph& graph);

 private:
  using Places = std::array<std::byte*, input_count>;  // of a sample's inputs; null: the program has none
  // `index`: of the sample in the program. A sample that does not exist has the defaults, without targets.
  Status load_sample(const Graph& graph, const Places& places, const SampleSource& source, uint64_t index,
                     uint64_t sample, bool exists);
  void take(const Graph& graph, uint64_t index, const Places& places);

  std::vector<std::byte> staged_;  // empty: sources write into the arena
  // With Graph::texts: inputs for all rows of a sample, of which those of texts are taken, and these rows for
  // each sample of the last load.
  std::array<std::vector<std::byte>, input_count> of_rows_;
  std::vector<int32_t> text_rows_;
};

}  // namespace stw
