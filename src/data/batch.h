// A host's global batch: named DLPack tensors, checked once and read sample by sample without copies.
#pragma once
#include <cstdint>

#include "include/stowage/dlpack.h"
#include "planner/base/result.h"
#include "planner/graph/graph.h"
#include "src/execute/sample_rows.h"

namespace stw {

// A matrix (samples, tokens) or (samples, labels) in host memory, or a vector (samples) with one column.
template <class T>
struct HostMatrix {
  const T* data = nullptr;
  int64_t samples = 0, tokens = 1;
  int64_t sample_stride = 0, token_stride = 0;  // in elements
  T at(int64_t sample, int64_t token = 0) const {
    return data[sample * sample_stride + token * token_stride];
  }
};

// The limits that a batch is checked against.
struct BatchLimits {
  int64_t samples, sequence, vocabulary;
  int64_t labels;       // number of labels of a task with labels, else 0
  int64_t token_types;  // number of token types of the model, else 0
  InputIndices inputs;  // of the plan's graph
  Preference preference;
  Task task = Task::language_model;
};

class Batch {
 public:
  // Errors: bad_argument for unknown or missing names, for wrong types, shapes or lengths, for tokens outside
  // of the vocabulary, for targets that are neither -100 nor in the vocabulary, for positions that neither
  // count up nor restart at 0, and for weights that are not finite. The message names the tensor, the
  // expected and the found value. unsupported for a tensor for which the plan has no input.
  static Result<Batch> read(const char* const* names, const DLManagedTensorVersioned* const* tensors,
                            uint32_t count, const BatchLimits& limits);
  int64_t samples() const { return tokens_.samples; }
  int64_t tokens() const { return tokens_.tokens; }
  // Copies one sample, padded to `sequence` with ignored tokens.
  void copy(int64_t sample, int64_t sequence, const SampleRows& rows) const;
  // Writes a sample's losses as log-probabilities. `losses` has the order of copy()'s targets, `out` that of
  // the host's targets or labels.
  void put_log_probabilities(const float* losses, float* out) const;

 private:
  int64_t length(int64_t sample) const { return lengths_.data ? lengths_.at(sample) : tokens_.tokens; }
  Status check_lengths() const;
  template <class T>
  Status check_shape(const char* name, const HostMatrix<T>& m) const;
  Status check_tokens(int64_t vocabulary) const;
  Status check_targets(const char* name, const HostMatrix<int32_t>& m, const BatchLimits& limits) const;
  Status check_classes(int64_t labels) const;
  Status check_values(Task task) const;
  Status check_spans() const;
  Status check_positions() const;
  Status check_finite(const char* name, const HostMatrix<float>& m) const;
  Status check_token_types(int64_t types) const;
  Status check_pairs(Preference preference) const;

  // Column of a label minus the column of the token whose target it is.
  int64_t shift() const { return labels_.data && !are_of_tokens_ ? 1 : 0; }

  HostMatrix<int32_t> tokens_, lengths_, positions_, token_types_;
  bool are_of_tokens_ = false;  // labels_ belong to their own tokens and are not shifted
  // At most one of these is set. classes_: the labels of a classifier's samples.
  HostMatrix<int32_t> targets_, labels_, classes_;
  HostMatrix<float> weights_, reference_;
  HostMatrix<float> values_;  // (samples, labels), in place of classes
};

}  // namespace stw
