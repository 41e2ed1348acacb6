// A host's global batch: named DLPack tensors, checked and read sample by sample without copies.
#pragma once
#include <cstdint>

#include "planner/result.h"
#include "src/dlpack.h"

namespace stw {

// An int32 matrix (samples, tokens) in host memory, or a vector (samples): one token each.
struct TokenMatrix {
  const int32_t* data = nullptr;
  int64_t samples = 0, tokens = 1;
  int64_t sample_stride = 0, token_stride = 0;   // in elements
  int32_t at(int64_t sample, int64_t token = 0) const { return data[sample * sample_stride + token * token_stride]; }
};

class Batch {
 public:
  // Errors: bad_argument naming the tensor, what was expected and what was found: unknown or missing names, types,
  // shapes, lengths, tokens outside of the vocabulary, targets that are neither -100 nor in it.
  static Result<Batch> read(const char* const* names, const dlpack::Managed* const* tensors, uint32_t count,
                            int64_t largest_batch, int64_t sequence, int64_t vocabulary);
  int64_t samples() const { return tokens_.samples; }
  // One sample, continued to `sequence` with ignored tokens.
  void copy(int64_t sample, int64_t sequence, int32_t* tokens, int32_t* targets) const;

 private:
  int64_t length(int64_t sample) const { return lengths_.data ? lengths_.at(sample) : tokens_.tokens; }
  Status check_lengths() const;
  Status check_ids(const char* name, const TokenMatrix& m, int64_t vocabulary, bool may_be_ignored) const;

  TokenMatrix tokens_, targets_, labels_, lengths_;   // targets or labels
};

}  // namespace stw
