// A host's global batch: named DLPack tensors, checked once and read sample by sample without copies.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "planner/base/result.h"
#include "planner/graph/graph.h"
#include "src/data/host_tensor.h"
#include "src/execute/sample_rows.h"

namespace stw {

// What a batch is checked against.
struct BatchLimits {
  const Graph& graph;
  int64_t samples;
  InputIndices inputs;  // those of the graph that the batch may have
  Preference preference;
};

class Batch {
 public:
  // Errors: bad_argument for unknown or missing names, for wrong types, shapes or lengths, for tokens outside
  // of the vocabulary, for targets that are neither -100 nor in the vocabulary, for positions that neither
  // count up nor restart at 0, and for weights that are not finite. The message names the tensor, the
  // expected and the found value. unsupported for a tensor for which the plan has no input.
  static Result<Batch> read(const char* const* names, const DLManagedTensorVersioned* const* tensors,
                            uint32_t count, const BatchLimits& limits);
  int64_t samples() const { return of(Input::tokens).samples(); }
  int64_t tokens() const { return of(Input::tokens).columns(); }
  // Copies one sample to rows that hold the defaults. The rows that the batch lacks are padding.
  void copy(int64_t sample, const SampleRows& rows) const;
  // Writes a sample's losses as log-probabilities. `losses` has the order of copy()'s targets, `out` that of
  // the host's targets or labels.
  void put_log_probabilities(const float* losses, float* out) const;

 private:
  const HostTensor& of(Input input) const { return inputs_[static_cast<size_t>(input)]; }
  HostTensor& of(Input input) { return inputs_[static_cast<size_t>(input)]; }
  int64_t length(int64_t sample) const { return lengths_.data ? lengths_.at<int32_t>(sample) : tokens(); }
  int64_t rows_of(Input input, int64_t sample) const;
  // Whether a row of a sample has a target. `row`: of the document's label, if documents have labels.
  bool has_target(int64_t sample, int64_t i, TargetRow row) const;
  template <class T>
  void copy_input(Input input, int64_t sample, const SampleRows& rows) const;

  // Finds the place of a tensor by its name, checks the tensor's type and shape and puts it there.
  Status take(const std::string& name, const DLManagedTensorVersioned* tensor, const BatchLimits& limits);
  Status take_labels(const DLManagedTensorVersioned* tensor, const BatchLimits& limits);
  Status check(const BatchLimits& limits) const;
  Status check_lengths() const;
  Status check_input(Input input, const Graph& graph) const;
  template <class T>
  Status check_numbers(Input input, const Graph& graph) const;
  Status check_shape(const char* name, const HostTensor& tensor, Dimension rows) const;
  Status check_targets(const char* name, const HostTensor& tensor, const Graph& graph) const;
  Status check_classes(int64_t labels) const;
  Status check_values(Task task) const;
  Status check_spans() const;
  Status check_positions() const;
  Status check_pairs(Preference preference) const;

  // By the inputs that they become. Targets are also those that were given as labels of tokens; values have
  // no rows (samples, labels).
  std::array<HostTensor, input_count> inputs_;
  HostTensor lengths_;
  HostTensor labels_;   // of tokens, until they become targets
  HostTensor classes_;  // the labels of a classifier's samples
  int64_t shift_ = 0;   // the column of a target minus the column of the token whose target it is
};

}  // namespace stw
