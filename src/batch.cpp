#include "src/batch.h"

#include <string>

#include "kernels/kernels.h"

namespace stw {

namespace {

Error wrong(const std::string& name, const std::string& what) { return {Code::bad_argument, "batch: " + name + ": " + what}; }

Result<TokenMatrix> view(const std::string& name, const dlpack::Managed* managed, int64_t largest_batch, int64_t sequence) {
  if (!managed) return wrong(name, "the tensor is NULL");
  if (managed->version.major != dlpack::major_version)
    return wrong(name, "expected DLPack version 1, found " + std::to_string(managed->version.major));
  const dlpack::Tensor& t = managed->tensor;
  if (t.device.type != dlpack::device_cpu && t.device.type != dlpack::device_cuda_host) return wrong(name, "expected host memory");
  if (t.dtype.code != dlpack::code_int || t.dtype.bits != 32 || t.dtype.lanes != 1) return wrong(name, "expected int32");
  if (t.ndim != 2 || !t.shape) return wrong(name, "expected two dimensions (samples, tokens), found " + std::to_string(t.ndim));
  if (t.shape[0] < 1 || t.shape[0] > largest_batch || t.shape[1] < 1 || t.shape[1] > sequence)
    return wrong(name, "expected at most (" + std::to_string(largest_batch) + ", " + std::to_string(sequence) + "), found (" +
                           std::to_string(t.shape[0]) + ", " + std::to_string(t.shape[1]) + ")");
  if (!t.data) return wrong(name, "the data is NULL");
  TokenMatrix m;
  m.data = reinterpret_cast<const int32_t*>(static_cast<const char*>(t.data) + t.byte_offset);
  m.samples = t.shape[0];
  m.tokens = t.shape[1];
  m.sample_stride = t.strides ? t.strides[0] : m.tokens;
  m.token_stride = t.strides ? t.strides[1] : 1;
  return m;
}

Status check_range(const std::string& name, const TokenMatrix& m, int64_t vocabulary, bool may_be_ignored) {
  for (int64_t s = 0; s < m.samples; ++s)
    for (int64_t i = 0; i < m.tokens; ++i) {
      const int32_t id = m.at(s, i);
      if ((id >= 0 && id < vocabulary) || (may_be_ignored && id == kernels::ignored_target)) continue;
      return wrong(name, "sample " + std::to_string(s) + ", token " + std::to_string(i) + ": id " + std::to_string(id) +
                             " is outside of the vocabulary of " + std::to_string(vocabulary));
    }
  return ok();
}

}  // namespace

Result<Batch> Batch::read(const char* const* names, const dlpack::Managed* const* tensors, uint32_t count,
                          int64_t largest_batch, int64_t sequence, int64_t vocabulary) {
  Batch batch;
  if (count > 0 && (!names || !tensors)) return Error{Code::bad_argument, "batch: names or tensors is NULL"};
  for (uint32_t i = 0; i < count; ++i) {
    const std::string name = names[i] ? names[i] : "";
    TokenMatrix* to = name == "tokens" ? &batch.tokens_ : name == "targets" ? &batch.targets_ : nullptr;
    if (!to) return Error{Code::unsupported, "batch: unknown tensor \"" + name + "\"; there are tokens and targets"};
    if (to->data) return wrong(name, "it is there twice");
    STW_ASSIGN(matrix, view(name, tensors[i], largest_batch, sequence));
    *to = matrix;
  }
  if (!batch.tokens_.data) return wrong("tokens", "it is missing");
  if (!batch.targets_.data) return wrong("targets", "it is missing");
  if (batch.tokens_.samples != batch.targets_.samples || batch.tokens_.tokens != batch.targets_.tokens)
    return Error{Code::bad_argument, "batch: tokens and targets have different shapes"};
  STW_TRY(check_range("tokens", batch.tokens_, vocabulary, false));
  STW_TRY(check_range("targets", batch.targets_, vocabulary, true));
  return batch;
}

void Batch::copy(int64_t sample, int64_t sequence, int32_t* tokens, int32_t* targets) const {
  for (int64_t i = 0; i < sequence; ++i) {
    const bool there = i < tokens_.tokens;
    tokens[i] = there ? tokens_.at(sample, i) : 0;
    targets[i] = there ? targets_.at(sample, i) : kernels::ignored_target;
  }
}

}  // namespace stw
