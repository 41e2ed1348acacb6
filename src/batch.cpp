#include "src/batch.h"

#include <string>

#include "kernels/kernels.h"

namespace stw {

namespace {

Error wrong(const std::string& name, const std::string& what) { return {Code::bad_argument, "batch: " + name + ": " + what}; }

Result<TokenMatrix> view(const std::string& name, const dlpack::Managed* managed, int64_t largest_batch, int64_t sequence,
                         int dimensions) {
  if (!managed) return wrong(name, "the tensor is NULL");
  if (managed->version.major != dlpack::major_version)
    return wrong(name, "expected DLPack version 1, found " + std::to_string(managed->version.major));
  const dlpack::Tensor& t = managed->tensor;
  if (t.device.type != dlpack::device_cpu && t.device.type != dlpack::device_cuda_host) return wrong(name, "expected host memory");
  if (t.dtype.code != dlpack::code_int || t.dtype.bits != 32 || t.dtype.lanes != 1) return wrong(name, "expected int32");
  if (t.ndim != dimensions || !t.shape)
    return wrong(name, std::string(dimensions == 2 ? "expected two dimensions (samples, tokens)" : "expected one dimension (samples)") +
                           ", found " + std::to_string(t.ndim));
  TokenMatrix m;
  m.samples = t.shape[0];
  if (dimensions == 2) m.tokens = t.shape[1];
  if (m.samples < 1 || m.samples > largest_batch || m.tokens < 1 || m.tokens > sequence) {
    const bool rows = dimensions == 2;
    return wrong(name, "expected at most (" + std::to_string(largest_batch) + (rows ? ", " + std::to_string(sequence) : "") +
                           "), found (" + std::to_string(m.samples) + (rows ? ", " + std::to_string(m.tokens) : "") + ")");
  }
  if (!t.data) return wrong(name, "the data is NULL");
  m.data = reinterpret_cast<const int32_t*>(static_cast<const char*>(t.data) + t.byte_offset);
  m.sample_stride = t.strides ? t.strides[0] : m.tokens;
  m.token_stride = t.strides && dimensions == 2 ? t.strides[1] : 1;
  return m;
}

}  // namespace

Status Batch::check_lengths() const {
  if (!lengths_.data) return ok();
  if (lengths_.samples != tokens_.samples)
    return wrong("lengths", "expected one for each of " + std::to_string(tokens_.samples) + " samples, found " + std::to_string(lengths_.samples));
  for (int64_t s = 0; s < lengths_.samples; ++s)
    if (lengths_.at(s) < 0 || lengths_.at(s) > tokens_.tokens)
      return wrong("lengths", "sample " + std::to_string(s) + ": expected 0 to " + std::to_string(tokens_.tokens) + ", found " +
                                  std::to_string(lengths_.at(s)));
  return ok();
}

Status Batch::check_ids(const char* name, const TokenMatrix& m, int64_t vocabulary, bool may_be_ignored) const {
  if (m.samples != tokens_.samples || m.tokens != tokens_.tokens)
    return Error{Code::bad_argument, std::string("batch: tokens and ") + name + " have different shapes"};
  for (int64_t s = 0; s < m.samples; ++s)
    for (int64_t i = 0; i < length(s); ++i) {
      const int32_t id = m.at(s, i);
      if ((id >= 0 && id < vocabulary) || (may_be_ignored && id == kernels::ignored_target)) continue;
      return wrong(name, "sample " + std::to_string(s) + ", token " + std::to_string(i) + ": id " + std::to_string(id) +
                             " is outside of the vocabulary of " + std::to_string(vocabulary));
    }
  return ok();
}

Result<Batch> Batch::read(const char* const* names, const dlpack::Managed* const* tensors, uint32_t count,
                          int64_t largest_batch, int64_t sequence, int64_t vocabulary) {
  Batch batch;
  if (count > 0 && (!names || !tensors)) return Error{Code::bad_argument, "batch: names or tensors is NULL"};
  const struct { const char* name; TokenMatrix* matrix; int dimensions; } known[] = {
      {"tokens", &batch.tokens_, 2}, {"targets", &batch.targets_, 2}, {"labels", &batch.labels_, 2}, {"lengths", &batch.lengths_, 1}};
  for (uint32_t i = 0; i < count; ++i) {
    const std::string name = names[i] ? names[i] : "";
    bool found = false;
    for (const auto& k : known) {
      if (name != k.name) continue;
      found = true;
      if (k.matrix->data) return wrong(name, "it is there twice");
      STW_ASSIGN(matrix, view(name, tensors[i], largest_batch, sequence, k.dimensions));
      *k.matrix = matrix;
    }
    if (!found) return Error{Code::unsupported, "batch: unknown tensor \"" + name + "\"; there are tokens, targets, labels and lengths"};
  }
  if (!batch.tokens_.data) return wrong("tokens", "it is missing");
  if (!batch.targets_.data && !batch.labels_.data) return wrong("targets", "it is missing, and so is labels");
  if (batch.targets_.data && batch.labels_.data) return wrong("labels", "expected targets or labels, found both");
  STW_TRY(batch.check_lengths());
  STW_TRY(batch.check_ids("tokens", batch.tokens_, vocabulary, false));
  if (batch.targets_.data) STW_TRY(batch.check_ids("targets", batch.targets_, vocabulary, true));
  if (batch.labels_.data) STW_TRY(batch.check_ids("labels", batch.labels_, vocabulary, true));
  return batch;
}

void Batch::copy(int64_t sample, int64_t sequence, int32_t* tokens, int32_t* targets) const {
  const int64_t end = length(sample);
  for (int64_t i = 0; i < sequence; ++i) {
    tokens[i] = i < end ? tokens_.at(sample, i) : 0;
    targets[i] = kernels::ignored_target;
    if (targets_.data && i < end) targets[i] = targets_.at(sample, i);
    if (labels_.data && i + 1 < end) targets[i] = labels_.at(sample, i + 1);
  }
}

}  // namespace stw
