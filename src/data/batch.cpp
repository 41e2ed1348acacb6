#include "src/data/batch.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/contract/kernels.h"
#include "src/base/values.h"

namespace stw {

namespace {

Error outside(const char* name, int64_t sample, int64_t token, int32_t id, const std::string& of) {
  return wrong_tensor(name, "sample " + std::to_string(sample) +
                                (token < 0 ? "" : ", token " + std::to_string(token)) + ": id " +
                                std::to_string(id) + " is outside of the " + of);
}

// For `outside`.
std::string range_text(Dimension of, const Graph& graph) {
  const std::string size = std::to_string(graph.size_of(of));
  return of == Dimension::vocabulary ? "vocabulary of " + size : size + " " + words_of(of);
}

// The inputs that a batch has under their names.
bool is_named(Input input) { return input_row(input).source == InputSource::sample; }

// All names that a batch may have: integers first.
std::string known_names() {
  std::vector<std::string> names;
  for (const Format format : {Format::i32, Format::f32})
    for (const Input input : each_input) {
      if (!is_named(input) || input_row(input).format != format) continue;
      names.push_back(input_row(input).name);
      if (input == Input::targets) names.insert(names.end(), {"labels", "lengths"});
    }
  std::string text;
  for (size_t k = 0; k < names.size(); ++k)
    text += (k == 0 ? "" : k + 1 < names.size() ? ", " : " and ") + names[k];
  return text;
}

}  // namespace

Status Batch::check_lengths() const {
  if (!lengths_.data) return ok();
  if (lengths_.samples() != samples())
    return wrong_tensor("lengths", "expected one for each of " + std::to_string(samples()) +
                                       " samples, found " + std::to_string(lengths_.samples()));
  for (int64_t s = 0; s < samples(); ++s)
    if (length(s) < 0 || length(s) > tokens())
      return wrong_tensor("lengths", "sample " + std::to_string(s) + ": expected 0 to " +
                                         std::to_string(tokens()) + ", found " + std::to_string(length(s)));
  return ok();
}

int64_t Batch::rows_of(Input input, int64_t sample) const {
  return input_row(input).written_rows() == Dimension::tokens ? length(sample) : of(input).columns();
}

Status Batch::check_shape(const char* name, const HostTensor& tensor, Dimension rows) const {
  if (tensor.samples() == samples() && (rows != Dimension::tokens || tensor.columns() == tokens()))
    return ok();
  return Error{Code::bad_argument, std::string("batch: tokens and ") + name + " have different shapes"};
}

// Checks what the table of inputs says about the input.
Status Batch::check_input(Input input, const Graph& graph) const {
  if (!of(input).data || !is_named(input)) return ok();
  STW_TRY(check_shape(input_row(input).name, of(input), input_row(input).written_rows()));
  return of(input).format == Format::f32 ? check_numbers<float>(input, graph)
                                         : check_numbers<int32_t>(input, graph);
}

template <class T>
Status Batch::check_numbers(Input input, const Graph& graph) const {
  const InputRow& row = input_row(input);
  const int64_t end = graph.size_of(row.below);
  for (int64_t s = 0; s < samples(); ++s)
    for (int64_t i = 0; i < rows_of(input, s); ++i) {
      std::optional<T> bad;
      of(input).for_elements<T>(2, s, i, [&](T x) {
        if constexpr (std::is_same_v<T, float>) {
          if (!std::isfinite(x)) bad = x;
        } else if (row.below != Dimension::none && (x < 0 || x >= end)) {
          bad = x;
        }
      });
      if (!bad) continue;
      if constexpr (std::is_same_v<T, float>)
        return wrong_tensor(row.name, "sample " + std::to_string(s) + ", token " + std::to_string(i) +
                                          ": expected a finite number");
      else return outside(row.name, s, i, *bad, range_text(row.below, graph));
    }
  return ok();
}

Status Batch::check_targets(const char* name, const HostTensor& tensor, const Graph& graph) const {
  if (!tensor.data) return ok();
  STW_TRY(check_shape(name, tensor, Dimension::tokens));
  const Dimension below = graph.head.labels() > 0 ? Dimension::labels : Dimension::vocabulary;
  const int64_t end = graph.size_of(below);
  for (int64_t s = 0; s < samples(); ++s)
    for (int64_t i = 0; i < length(s); ++i)
      if (const auto id = tensor.at<int32_t>(s, i); id != kernels::ignored_target && (id < 0 || id >= end))
        return outside(name, s, i, id, range_text(below, graph));
  return ok();
}

Status Batch::check_classes(int64_t labels) const {
  if (!classes_.data) return ok();
  if (classes_.samples() != samples())
    return wrong_tensor("labels", "expected one for each of " + std::to_string(samples()) +
                                      " samples, found " + std::to_string(classes_.samples()));
  for (int64_t s = 0; s < samples(); ++s)
    if (const auto id = classes_.at<int32_t>(s); id != kernels::ignored_target && (id < 0 || id >= labels))
      return outside("labels", s, -1, id, std::to_string(labels) + " labels");
  return ok();
}

// The row of a sample without values begins with a NaN.
Status Batch::check_values(Task task) const {
  const HostTensor& values = of(Input::values);
  if (!values.data) return ok();
  if (values.samples() != samples())
    return wrong_tensor("labels", "expected a row for each of " + std::to_string(samples()) +
                                      " samples, found " + std::to_string(values.samples()));
  for (int64_t s = 0; s < samples(); ++s)
    for (int64_t i = 0; i < values.columns() && !std::isnan(values.at<float>(s)); ++i)
      if (const auto x = values.at<float>(s, i); !is_value(task, x))
        return wrong_tensor("labels", "sample " + std::to_string(s) + ", label " + std::to_string(i) +
                                          ": expected " + values_of(task) + ", found " + std::to_string(x));
  return task == Task::spans ? check_spans() : ok();
}

// An answer lies within the first document of its sample.
Status Batch::check_spans() const {
  const HostTensor &values = of(Input::values), &positions = of(Input::positions);
  for (int64_t s = 0; s < samples(); ++s) {
    if (std::isnan(values.at<float>(s))) continue;
    int64_t tokens = std::min<int64_t>(length(s), 1);
    while (tokens < length(s) && !(positions.data && positions.at<int32_t>(s, tokens) == 0)) ++tokens;
    const float answer[] = {values.at<float>(s, 0), values.at<float>(s, 1)};
    if (!is_span(answer, static_cast<uint64_t>(tokens)))
      return wrong_tensor("labels", "sample " + std::to_string(s) + ": expected an answer within its " +
                                        std::to_string(tokens) + " tokens, found one from token " +
                                        std::to_string(static_cast<int64_t>(answer[0])) + " to token " +
                                        std::to_string(static_cast<int64_t>(answer[1])));
  }
  return ok();
}

// Positions within a document count up: 0, 1, 2, …
Status Batch::check_positions() const {
  const HostTensor& positions = of(Input::positions);
  if (!positions.data) return ok();
  for (int64_t s = 0; s < samples(); ++s)
    for (int64_t i = 0; i < length(s); ++i) {
      const auto p = positions.at<int32_t>(s, i);
      const int64_t next = i == 0 ? 0 : int64_t{positions.at<int32_t>(s, i - 1)} + 1;
      if (p != 0 && p != next)
        return wrong_tensor("positions", "sample " + std::to_string(s) + ", token " + std::to_string(i) +
                                             ": expected 0" +
                                             (next > 0 ? " or " + std::to_string(next) : "") + ", found " +
                                             std::to_string(p));
    }
  return ok();
}

Status Batch::check_pairs(Preference preference) const {
  if (preference == Preference::none) return ok();
  const auto missing = [&](const char* name, const char* why) {
    return wrong_tensor(
        name, std::string("it is missing; the plan is for a preference (") + name_of(preference) + why);
  };
  if (!of(Input::positions).data) return missing("positions", "), whose pairs are documents of a sample");
  if (has_reference(preference) && !of(Input::reference).data) return missing("reference", ") against one");
  return ok();
}

// Labels of documents with several numbers are an input of that kind. One label of a document is a class, and
// labels of tokens are targets.
Status Batch::take_labels(const DLManagedTensorVersioned* tensor, const BatchLimits& limits) {
  const Graph& graph = limits.graph;
  HostShape shape(limits.samples);
  for (const Input input : each_input) {
    const InputRow& row = input_row(input);
    if (row.source != InputSource::labels || limits.inputs[input] < 0) continue;
    for (const Dimension dimension : row.shape) shape.add(dimension, graph);
    return put_tensor("labels", tensor, row.format, shape, of(input));
  }
  if (graph.head.labels() > 0 && graph.head.row().has_targets_of_texts())
    return put_tensor("labels", tensor, Format::i32, shape, classes_);
  return put_tensor("labels", tensor, Format::i32, shape.add(Dimension::tokens, graph), labels_);
}

Status Batch::take(const std::string& name, const DLManagedTensorVersioned* tensor,
                   const BatchLimits& limits) {
  const Graph& graph = limits.graph;
  if (graph.head.row().has_values() && name == "targets")
    return wrong_tensor(name, std::string("the model's task is ") + graph.head.row().name +
                                  ": expected labels (samples, labels) of float32");
  if (name == "labels") return take_labels(tensor, limits);
  if (name == "lengths") return put_tensor(name, tensor, Format::i32, HostShape(limits.samples), lengths_);
  for (const Input input : each_input) {
    const InputRow& row = input_row(input);
    if (!is_named(input) || name != row.name) continue;
    if (limits.inputs[input] < 0)
      return Error{Code::unsupported, "batch: " + name +
                                          (row.demand == InputDemand::request
                                               ? ": the plan has no such input; ask for it when planning"
                                               : std::string(": the model has no ") + words_of(row.below))};
    HostShape shape(limits.samples);
    shape.add(row.written_rows(), graph);
    for (const Dimension dimension : row.shape) shape.add(dimension, graph);
    return put_tensor(name, tensor, row.format, shape, of(input));
  }
  return Error{Code::bad_argument, "batch: unknown tensor \"" + name + "\"; there are " + known_names()};
}

Result<Batch> Batch::read(const char* const* names, const DLManagedTensorVersioned* const* tensors,
                          uint32_t count, const BatchLimits& limits) {
  Batch batch;
  if (count > 0 && (!names || !tensors)) return Error{Code::bad_argument, "batch: names or tensors is NULL"};
  for (uint32_t i = 0; i < count; ++i) STW_TRY(batch.take(names[i] ? names[i] : "", tensors[i], limits));
  STW_TRY(batch.check(limits));
  const TaskRow& task = limits.graph.head.row();
  if (!batch.labels_.data) return batch;
  batch.shift_ = task.has_labels_of_tokens() || task.hides_tokens ? 0 : 1;
  batch.of(Input::targets) = std::exchange(batch.labels_, {});
  return batch;
}

Status Batch::check(const BatchLimits& limits) const {
  const Graph& graph = limits.graph;
  const HostTensor &targets = of(Input::targets), &values = of(Input::values);
  if (!of(Input::tokens).data) return wrong_tensor("tokens", "it is missing");
  const bool has_labels = labels_.data || classes_.data || values.data;
  if (graph.head.row().has_values() && !has_labels) return wrong_tensor("labels", "it is missing");
  if (!targets.data && !has_labels) return wrong_tensor("targets", "it is missing; give targets or labels");
  if (targets.data && has_labels) return wrong_tensor("labels", "expected targets or labels, found both");
  STW_TRY(check_lengths());
  for (const Input input : each_input) STW_TRY(check_input(input, graph));
  STW_TRY(check_targets("targets", targets, graph));
  STW_TRY(check_targets("labels", labels_, graph));
  STW_TRY(check_classes(graph.head.labels()));
  STW_TRY(check_positions());
  STW_TRY(check_values(graph.head.task));
  return check_pairs(limits.preference);
}

void Batch::put_log_probabilities(const float* losses, float* out) const {
  for (int64_t i = 0; i < tokens(); ++i) out[i] = i < shift_ ? 0 : 0 - losses[i - shift_];
}

bool Batch::has_target(int64_t sample, int64_t i, TargetRow row) const {
  const HostTensor &targets = of(Input::targets), &positions = of(Input::positions),
                   &values = of(Input::values);
  const int64_t end = length(sample);
  const bool goes_on = i + 1 < end && !(positions.data && positions.at<int32_t>(sample, i + 1) == 0);
  if (targets.data) return shift_ == 0 ? i < end : goes_on;
  if (values.data && std::isnan(values.at<float>(sample))) return false;
  return row == TargetRow::first ? i == 0 && end > 0 : i + 1 == end;
}

// A row with a target takes the numbers of that target.
template <class T>
void Batch::copy_input(Input input, int64_t sample, const SampleRows& rows) const {
  const HostTensor& from = of(input);
  const SampleInput& to = rows[input];
  if (!from.data || !to.data) return;
  const std::span<T> numbers = to.numbers<T>();
  const bool is_of_target = input_row(input).rows == Dimension::logit_rows;
  const int dimensions = is_named(input) ? 2 : 1;
  for (int64_t i = 0; i < to.rows; ++i) {
    if (is_of_target ? !has_target(sample, i, rows.target_row) : i >= rows_of(input, sample)) continue;
    T* out = numbers.data() + i * to.width;
    from.for_elements<T>(dimensions, sample, is_of_target ? i + shift_ : i, [&](T x) { *out++ = x; });
  }
}

void Batch::copy(int64_t sample, const SampleRows& rows) const {
  for (const Input input : each_input) {
    if (input_row(input).format == Format::f32) copy_input<float>(input, sample, rows);
    else copy_input<int32_t>(input, sample, rows);
  }
  // Padding rows are documents of their own.
  const auto targets = rows.integers(Input::targets), positions = rows.integers(Input::positions);
  for (auto i = static_cast<size_t>(length(sample)); i < positions.size(); ++i) positions[i] = 0;
  if (of(Input::targets).data) return;
  // A document's label is a class, or numbers, which a target of 0 announces.
  for (size_t i = 0; i < targets.size(); ++i)
    if (has_target(sample, static_cast<int64_t>(i), rows.target_row))
      targets[i] = classes_.data ? classes_.at<int32_t>(sample) : 0;
}

}  // namespace stw
