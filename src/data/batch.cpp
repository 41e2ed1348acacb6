#include "src/data/batch.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include "kernels/contract/kernels.h"
#include "src/base/values.h"

namespace stw {

namespace {

Error wrong(const std::string& name, const std::string& what) {
  return {Code::bad_argument, "batch: " + name + ": " + what};
}

// `labels`: the columns of a matrix (samples, labels); 0 for a matrix (samples, tokens) or a vector.
template <class T>
Result<HostMatrix<T>> view(const std::string& name, const DLManagedTensorVersioned* managed,
                           const BatchLimits& limits, int dimensions, int64_t labels = 0) {
  constexpr bool is_float = std::is_same_v<T, float>;
  if (!managed) return wrong(name, "the tensor is NULL");
  if (managed->version.major != DLPACK_MAJOR_VERSION)
    return wrong(name, "expected DLPack version 1, found " + std::to_string(managed->version.major));
  const DLTensor& t = managed->dl_tensor;
  if (t.device.device_type != kDLCPU && t.device.device_type != kDLCUDAHost)
    return wrong(name, "expected host memory");
  if (t.dtype.code != (is_float ? kDLFloat : kDLInt) || t.dtype.bits != 32 || t.dtype.lanes != 1)
    return wrong(name, is_float ? "expected float32" : "expected int32");
  if (t.ndim != dimensions)
    return wrong(name, std::string(labels > 0        ? "expected two dimensions (samples, labels)"
                                   : dimensions == 2 ? "expected two dimensions (samples, tokens)"
                                                     : "expected one dimension (samples)") +
                           ", found " + std::to_string(t.ndim));
  if (!t.shape) return wrong(name, "the shape is NULL");
  HostMatrix<T> m;
  m.samples = t.shape[0];
  if (dimensions == 2) m.tokens = t.shape[1];
  if (labels > 0 && (m.samples < 1 || m.samples > limits.samples || m.tokens != labels))
    return wrong(name, "expected (1 to " + std::to_string(limits.samples) + ", " + std::to_string(labels) +
                           "), found (" + std::to_string(m.samples) + ", " + std::to_string(m.tokens) + ")");
  if (labels == 0 &&
      (m.samples < 1 || m.samples > limits.samples || m.tokens < 1 || m.tokens > limits.sequence)) {
    const bool rows = dimensions == 2;
    return wrong(name, "expected (1 to " + std::to_string(limits.samples) +
                           (rows ? ", 1 to " + std::to_string(limits.sequence) : "") + "), found (" +
                           std::to_string(m.samples) + (rows ? ", " + std::to_string(m.tokens) : "") + ")");
  }
  if (!t.data) return wrong(name, "the data is NULL");
  m.data = reinterpret_cast<const T*>(static_cast<const char*>(t.data) + t.byte_offset);
  if (reinterpret_cast<uintptr_t>(m.data) % alignof(T) != 0)
    return wrong(name, "expected data aligned to 4 bytes");
  m.sample_stride = t.strides ? t.strides[0] : m.tokens;
  m.token_stride = t.strides && dimensions == 2 ? t.strides[1] : 1;
  return m;
}

}  // namespace

Status Batch::check_lengths() const {
  if (!lengths_.data) return ok();
  if (lengths_.samples != tokens_.samples)
    return wrong("lengths", "expected one for each of " + std::to_string(tokens_.samples) +
                                " samples, found " + std::to_string(lengths_.samples));
  for (int64_t s = 0; s < lengths_.samples; ++s)
    if (lengths_.at(s) < 0 || lengths_.at(s) > tokens_.tokens)
      return wrong("lengths", "sample " + std::to_string(s) + ": expected 0 to " +
                                  std::to_string(tokens_.tokens) + ", found " +
                                  std::to_string(lengths_.at(s)));
  return ok();
}

template <class T>
Status Batch::check_shape(const char* name, const HostMatrix<T>& m) const {
  if (m.samples == tokens_.samples && m.tokens == tokens_.tokens) return ok();
  return Error{Code::bad_argument, std::string("batch: tokens and ") + name + " have different shapes"};
}

static Error outside(const char* name, int64_t sample, int64_t token, int32_t id, const std::string& of) {
  return wrong(name, "sample " + std::to_string(sample) +
                         (token < 0 ? "" : ", token " + std::to_string(token)) + ": id " +
                         std::to_string(id) + " is outside of the " + of);
}

Status Batch::check_tokens(int64_t vocabulary) const {
  for (int64_t s = 0; s < tokens_.samples; ++s)
    for (int64_t i = 0; i < length(s); ++i)
      if (const int32_t id = tokens_.at(s, i); id < 0 || id >= vocabulary)
        return outside("tokens", s, i, id, "vocabulary of " + std::to_string(vocabulary));
  return ok();
}

Status Batch::check_targets(const char* name, const HostMatrix<int32_t>& m, const BatchLimits& limits) const {
  if (!m.data) return ok();
  STW_TRY(check_shape(name, m));
  const int64_t end = limits.labels > 0 ? limits.labels : limits.vocabulary;
  for (int64_t s = 0; s < m.samples; ++s)
    for (int64_t i = 0; i < length(s); ++i)
      if (const int32_t id = m.at(s, i); id != kernels::ignored_target && (id < 0 || id >= end))
        return outside(
            name, s, i, id,
            limits.labels > 0 ? std::to_string(end) + " labels" : "vocabulary of " + std::to_string(end));
  return ok();
}

Status Batch::check_classes(int64_t labels) const {
  if (!classes_.data) return ok();
  if (classes_.samples != tokens_.samples)
    return wrong("labels", "expected one for each of " + std::to_string(tokens_.samples) +
                               " samples, found " + std::to_string(classes_.samples));
  for (int64_t s = 0; s < classes_.samples; ++s)
    if (const int32_t id = classes_.at(s); id != kernels::ignored_target && (id < 0 || id >= labels))
      return outside("labels", s, -1, id, std::to_string(labels) + " labels");
  return ok();
}

// The row of a sample without values begins with a NaN.
Status Batch::check_values(Task task) const {
  if (!values_.data) return ok();
  if (values_.samples != tokens_.samples)
    return wrong("labels", "expected a row for each of " + std::to_string(tokens_.samples) +
                               " samples, found " + std::to_string(values_.samples));
  for (int64_t s = 0; s < values_.samples; ++s)
    for (int64_t i = 0; i < values_.tokens && !std::isnan(values_.at(s)); ++i)
      if (const float x = values_.at(s, i); !is_value(task, x))
        return wrong("labels", "sample " + std::to_string(s) + ", label " + std::to_string(i) +
                                   ": expected " + values_of(task) + ", found " + std::to_string(x));
  return task == Task::spans ? check_spans() : ok();
}

// An answer lies within the first document of its sample.
Status Batch::check_spans() const {
  for (int64_t s = 0; s < values_.samples; ++s) {
    if (std::isnan(values_.at(s))) continue;
    int64_t tokens = std::min<int64_t>(length(s), 1);
    while (tokens < length(s) && !(positions_.data && positions_.at(s, tokens) == 0)) ++tokens;
    const float answer[] = {values_.at(s, 0), values_.at(s, 1)};
    if (!is_span(answer, static_cast<uint64_t>(tokens)))
      return wrong("labels", "sample " + std::to_string(s) + ": expected an answer within its " +
                                 std::to_string(tokens) + " tokens, found one from token " +
                                 std::to_string(static_cast<int64_t>(answer[0])) + " to token " +
                                 std::to_string(static_cast<int64_t>(answer[1])));
  }
  return ok();
}

// Positions within a document count up: 0, 1, 2, …
Status Batch::check_positions() const {
  if (!positions_.data) return ok();
  STW_TRY(check_shape("positions", positions_));
  for (int64_t s = 0; s < positions_.samples; ++s)
    for (int64_t i = 0; i < length(s); ++i) {
      const int32_t p = positions_.at(s, i);
      const int64_t next = i == 0 ? 0 : int64_t{positions_.at(s, i - 1)} + 1;
      if (p != 0 && p != next)
        return wrong("positions", "sample " + std::to_string(s) + ", token " + std::to_string(i) +
                                      ": expected 0" + (next > 0 ? " or " + std::to_string(next) : "") +
                                      ", found " + std::to_string(p));
    }
  return ok();
}

Status Batch::check_finite(const char* name, const HostMatrix<float>& m) const {
  if (!m.data) return ok();
  STW_TRY(check_shape(name, m));
  for (int64_t s = 0; s < m.samples; ++s)
    for (int64_t i = 0; i < length(s); ++i)
      if (!std::isfinite(m.at(s, i)))
        return wrong(name, "sample " + std::to_string(s) + ", token " + std::to_string(i) +
                               ": expected a finite number");
  return ok();
}

Status Batch::check_token_types(int64_t types) const {
  if (!token_types_.data) return ok();
  STW_TRY(check_shape("token_types", token_types_));
  for (int64_t s = 0; s < token_types_.samples; ++s)
    for (int64_t i = 0; i < length(s); ++i)
      if (const int32_t type = token_types_.at(s, i); type < 0 || type >= types)
        return outside("token_types", s, i, type, std::to_string(types) + " types of tokens");
  return ok();
}

Status Batch::check_pairs(Preference preference) const {
  if (preference == Preference::none) return ok();
  const auto missing = [&](const char* name, const char* why) {
    return wrong(name,
                 std::string("it is missing; the plan is for a preference (") + name_of(preference) + why);
  };
  if (!positions_.data) return missing("positions", "), whose pairs are documents of a sample");
  if (has_reference(preference) && !reference_.data) return missing("reference", ") against one");
  return ok();
}

Result<Batch> Batch::read(const char* const* names, const DLManagedTensorVersioned* const* tensors,
                          uint32_t count, const BatchLimits& limits) {
  Batch batch;
  if (count > 0 && (!names || !tensors)) return Error{Code::bad_argument, "batch: names or tensors is NULL"};
  const bool classifies = limits.labels > 0 && task_row(limits.task).has_targets_of_texts(),
             has_values = task_row(limits.task).has_values();
  batch.are_of_tokens_ = task_row(limits.task).has_labels_of_tokens();
  const struct {
    const char* name;
    HostMatrix<int32_t>* matrix;
    int dimensions;
  } known[] = {{"tokens", &batch.tokens_, 2},
               {"targets", &batch.targets_, 2},
               {"labels", classifies ? &batch.classes_ : &batch.labels_, classifies ? 1 : 2},
               {"lengths", &batch.lengths_, 1},
               {"positions", &batch.positions_, 2},
               {"token_types", &batch.token_types_, 2}};
  for (uint32_t i = 0; i < count; ++i) {
    const std::string name = names[i] ? names[i] : "";
    for (const Input optional : {Input::positions, Input::weights, Input::reference, Input::token_types})
      if (name == input_row(optional).name && limits.inputs[optional] < 0)
        return Error{Code::unsupported, "batch: " + name +
                                            (optional == Input::token_types
                                                 ? ": the model has no types of tokens"
                                                 : ": the plan has no such input; ask for it when planning")};
    bool found = false;
    if (has_values && name == "targets")
      return wrong(name, std::string("the model's task is ") + task_row(limits.task).name +
                             ": expected labels (samples, labels) of float32");
    if (has_values && name == "labels") {
      if (batch.values_.data) return wrong(name, "the name appears twice");
      STW_ASSIGN(matrix, view<float>(name, tensors[i], limits, 2, limits.labels));
      batch.values_ = matrix;
      continue;
    }
    for (const auto& [known_name, to] :
         {std::pair{"weights", &batch.weights_}, {"reference", &batch.reference_}}) {
      if (name != known_name) continue;
      found = true;
      if (to->data) return wrong(name, "the name appears twice");
      STW_ASSIGN(matrix, view<float>(name, tensors[i], limits, 2));
      *to = matrix;
    }
    for (const auto& k : known) {
      if (name != k.name) continue;
      found = true;
      if (k.matrix->data) return wrong(name, "the name appears twice");
      STW_ASSIGN(matrix, view<int32_t>(name, tensors[i], limits, k.dimensions));
      *k.matrix = matrix;
    }
    if (!found)
      return Error{Code::bad_argument, "batch: unknown tensor \"" + name +
                                           "\"; there are tokens, targets, labels, lengths, positions, "
                                           "token_types, weights and reference"};
  }
  if (!batch.tokens_.data) return wrong("tokens", "it is missing");
  const bool has_labels = batch.labels_.data || batch.classes_.data || batch.values_.data;
  if (has_values && !has_labels) return wrong("labels", "it is missing");
  if (!batch.targets_.data && !has_labels) return wrong("targets", "it is missing; give targets or labels");
  if (batch.targets_.data && has_labels) return wrong("labels", "expected targets or labels, found both");
  STW_TRY(batch.check_lengths());
  STW_TRY(batch.check_tokens(limits.vocabulary));
  STW_TRY(batch.check_targets("targets", batch.targets_, limits));
  STW_TRY(batch.check_targets("labels", batch.labels_, limits));
  STW_TRY(batch.check_classes(limits.labels));
  STW_TRY(batch.check_positions());
  STW_TRY(batch.check_values(limits.task));
  STW_TRY(batch.check_finite("weights", batch.weights_));
  STW_TRY(batch.check_finite("reference", batch.reference_));
  STW_TRY(batch.check_token_types(limits.token_types));
  STW_TRY(batch.check_pairs(limits.preference));
  if (task_row(limits.task).hides_tokens && batch.labels_.data)
    batch.targets_ = std::exchange(batch.labels_, {});
  return batch;
}

void Batch::put_log_probabilities(const float* losses, float* out) const {
  for (int64_t i = 0; i < tokens_.tokens; ++i) out[i] = i < shift() ? 0 : 0 - losses[i - shift()];
}

void Batch::copy(int64_t sample, int64_t sequence, const SampleRows& rows) const {
  const int64_t end = length(sample);
  const HostMatrix<int32_t>& targets = targets_.data ? targets_ : labels_;
  for (int64_t i = 0; i < sequence; ++i) {
    const bool is_there = i < end,
               goes_on = i + 1 < end && !(positions_.data && positions_.at(sample, i + 1) == 0);
    const bool is_labelled = rows.target_row == TargetRow::first ? i == 0 && is_there : i + 1 == end;
    const bool has_value = !(values_.data && std::isnan(values_.at(sample)));
    const bool has_target = targets_.data || (labels_.data && shift() == 0) ? is_there
                            : labels_.data                                  ? goes_on
                                                                            : is_labelled && has_value;
    const int64_t at = i + shift();  // labels and their weights are shifted together
    rows.tokens[i] = is_there ? tokens_.at(sample, i) : 0;
    rows.targets[i] = !has_target    ? kernels::ignored_target
                      : targets.data ? targets.at(sample, at)
                      : values_.data ? 0
                                     : classes_.at(sample);
    for (int64_t label = 0; has_target && label < values_.tokens && values_.data; ++label)
      rows.values[i * rows.value_count + label] = values_.at(sample, label);
    if (weights_.data && has_target) rows.weights[i] = weights_.at(sample, at);
    if (reference_.data && has_target) rows.reference[i] = reference_.at(sample, at);
    // Padding rows are documents of their own.
    if (rows.positions)
      rows.positions[i] = !is_there         ? 0
                          : positions_.data ? positions_.at(sample, i)
                                            : static_cast<int32_t>(i);
    if (token_types_.data) rows.token_types[i] = is_there ? token_types_.at(sample, i) : 0;
  }
}

}  // namespace stw
