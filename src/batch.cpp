#include "src/batch.h"

#include <cmath>
#include <string>
#include <type_traits>

#include "kernels/kernels.h"

namespace stw {

namespace {

Error wrong(const std::string& name, const std::string& what) { return {Code::bad_argument, "batch: " + name + ": " + what}; }

template <class T>
Result<HostMatrix<T>> view(const std::string& name, const dlpack::Managed* managed, const BatchLimits& limits, int dimensions) {
  constexpr bool is_float = std::is_same_v<T, float>;
  if (!managed) return wrong(name, "the tensor is NULL");
  if (managed->version.major != dlpack::major_version)
    return wrong(name, "expected DLPack version 1, found " + std::to_string(managed->version.major));
  const dlpack::Tensor& t = managed->tensor;
  if (t.device.type != dlpack::device_cpu && t.device.type != dlpack::device_cuda_host) return wrong(name, "expected host memory");
  if (t.dtype.code != (is_float ? dlpack::code_float : dlpack::code_int) || t.dtype.bits != 32 || t.dtype.lanes != 1)
    return wrong(name, is_float ? "expected float32" : "expected int32");
  if (t.ndim != dimensions)
    return wrong(name, std::string(dimensions == 2 ? "expected two dimensions (samples, tokens)" : "expected one dimension (samples)") +
                           ", found " + std::to_string(t.ndim));
  if (!t.shape) return wrong(name, "the shape is NULL");
  HostMatrix<T> m;
  m.samples = t.shape[0];
  if (dimensions == 2) m.tokens = t.shape[1];
  if (m.samples < 1 || m.samples > limits.samples || m.tokens < 1 || m.tokens > limits.sequence) {
    const bool rows = dimensions == 2;
    return wrong(name, "expected (1 to " + std::to_string(limits.samples) + (rows ? ", 1 to " + std::to_string(limits.sequence) : "") +
                           "), found (" + std::to_string(m.samples) + (rows ? ", " + std::to_string(m.tokens) : "") + ")");
  }
  if (!t.data) return wrong(name, "the data is NULL");
  m.data = reinterpret_cast<const T*>(static_cast<const char*>(t.data) + t.byte_offset);
  if (reinterpret_cast<uintptr_t>(m.data) % alignof(T) != 0) return wrong(name, "expected data at a multiple of 4 bytes");
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

template <class T>
Status Batch::check_shape(const char* name, const HostMatrix<T>& m) const {
  if (m.samples == tokens_.samples && m.tokens == tokens_.tokens) return ok();
  return Error{Code::bad_argument, std::string("batch: tokens and ") + name + " have different shapes"};
}

Status Batch::check_ids(const char* name, const HostMatrix<int32_t>& m, int64_t vocabulary, bool may_be_ignored) const {
  STW_TRY(check_shape(name, m));
  for (int64_t s = 0; s < m.samples; ++s)
    for (int64_t i = 0; i < length(s); ++i) {
      const int32_t id = m.at(s, i);
      if ((id >= 0 && id < vocabulary) || (may_be_ignored && id == kernels::ignored_target)) continue;
      return wrong(name, "sample " + std::to_string(s) + ", token " + std::to_string(i) + ": id " + std::to_string(id) +
                             " is outside of the vocabulary of " + std::to_string(vocabulary));
    }
  return ok();
}

// A document's tokens follow each other: 0, 1, 2, …
Status Batch::check_positions() const {
  if (!positions_.data) return ok();
  STW_TRY(check_shape("positions", positions_));
  for (int64_t s = 0; s < positions_.samples; ++s)
    for (int64_t i = 0; i < length(s); ++i) {
      const int32_t p = positions_.at(s, i);
      const int64_t next = i == 0 ? 0 : int64_t{positions_.at(s, i - 1)} + 1;
      if (p != 0 && p != next)
        return wrong("positions", "sample " + std::to_string(s) + ", token " + std::to_string(i) + ": expected 0" +
                                      (next > 0 ? " or " + std::to_string(next) : "") + ", found " + std::to_string(p));
    }
  return ok();
}

Status Batch::check_weights() const {
  if (!weights_.data) return ok();
  STW_TRY(check_shape("weights", weights_));
  for (int64_t s = 0; s < weights_.samples; ++s)
    for (int64_t i = 0; i < length(s); ++i)
      if (!std::isfinite(weights_.at(s, i)))
        return wrong("weights", "sample " + std::to_string(s) + ", token " + std::to_string(i) + ": expected a finite number");
  return ok();
}

Result<Batch> Batch::read(const char* const* names, const dlpack::Managed* const* tensors, uint32_t count, const BatchLimits& limits) {
  Batch batch;
  if (count > 0 && (!names || !tensors)) return Error{Code::bad_argument, "batch: names or tensors is NULL"};
  const struct { const char* name; HostMatrix<int32_t>* matrix; int dimensions; } known[] = {
      {"tokens", &batch.tokens_, 2}, {"targets", &batch.targets_, 2}, {"labels", &batch.labels_, 2}, {"lengths", &batch.lengths_, 1},
      {"positions", &batch.positions_, 2}};
  for (uint32_t i = 0; i < count; ++i) {
    const std::string name = names[i] ? names[i] : "";
    if ((name == "positions" && !limits.inputs.positions) || (name == "weights" && !limits.inputs.weights))
      return Error{Code::unsupported, "batch: " + name + ": the plan has no such input; ask for it when planning"};
    bool found = name == "weights";
    if (found) {
      if (batch.weights_.data) return wrong(name, "it is there twice");
      STW_ASSIGN(matrix, view<float>(name, tensors[i], limits, 2));
      batch.weights_ = matrix;
    }
    for (const auto& k : known) {
      if (name != k.name) continue;
      found = true;
      if (k.matrix->data) return wrong(name, "it is there twice");
      STW_ASSIGN(matrix, view<int32_t>(name, tensors[i], limits, k.dimensions));
      *k.matrix = matrix;
    }
    if (!found)
      return Error{Code::bad_argument, "batch: unknown tensor \"" + name + "\"; there are tokens, targets, labels, lengths, positions and weights"};
  }
  if (!batch.tokens_.data) return wrong("tokens", "it is missing");
  if (!batch.targets_.data && !batch.labels_.data) return wrong("targets", "it is missing, and so is labels");
  if (batch.targets_.data && batch.labels_.data) return wrong("labels", "expected targets or labels, found both");
  STW_TRY(batch.check_lengths());
  STW_TRY(batch.check_ids("tokens", batch.tokens_, limits.vocabulary, false));
  if (batch.targets_.data) STW_TRY(batch.check_ids("targets", batch.targets_, limits.vocabulary, true));
  if (batch.labels_.data) STW_TRY(batch.check_ids("labels", batch.labels_, limits.vocabulary, true));
  STW_TRY(batch.check_positions());
  STW_TRY(batch.check_weights());
  return batch;
}

void Batch::copy(int64_t sample, int64_t sequence, const SampleRows& rows) const {
  const int64_t end = length(sample);
  for (int64_t i = 0; i < sequence; ++i) {
    const bool is_there = i < end, goes_on = i + 1 < end && !(positions_.data && positions_.at(sample, i + 1) == 0);
    const bool has_target = labels_.data ? goes_on : is_there;
    const int64_t at = labels_.data ? i + 1 : i;   // labels and their weights are shifted together
    rows.tokens[i] = is_there ? tokens_.at(sample, i) : 0;
    rows.targets[i] = has_target ? (labels_.data ? labels_ : targets_).at(sample, at) : kernels::ignored_target;
    if (weights_.data && has_target) rows.weights[i] = weights_.at(sample, at);
    // What is not there is a document of its own.
    if (positions_.data) rows.positions[i] = is_there ? positions_.at(sample, i) : 0;
  }
}

}  // namespace stw
