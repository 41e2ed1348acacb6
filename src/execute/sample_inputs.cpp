#include "src/execute/sample_inputs.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

namespace stw {

namespace {

// For every row of a sample, the number of later rows in its document. A document begins where positions
// restart at 0.
void count_following(const Graph&, const SampleRows& rows) {
  const auto positions = rows.integers(Input::positions), following = rows.integers(Input::following);
  for (size_t i = following.size(); i-- > 0;)
    following[i] = i + 1 == following.size() || positions[i + 1] == 0 ? 0 : following[i + 1] + 1;
}

// Numbers the rows as transformers does: the padding token, `first` - 1, has the row of that number wherever
// it stands in a text, and later tokens do not count it.
void find_position_rows(const Graph& graph, const SampleRows& rows) {
  const auto first = static_cast<int32_t>(graph.first_position);
  const auto tokens = rows.integers(Input::tokens), positions = rows.integers(Input::positions),
             position_rows = rows.integers(Input::position_rows);
  int32_t padding = 0;  // padding tokens so far in the document
  for (size_t i = 0; i < position_rows.size(); ++i) {
    if (positions[i] == 0) padding = 0;
    const bool is_padding = tokens[i] == first - 1;
    position_rows[i] = is_padding ? first - 1 : first + positions[i] - padding;
    padding += is_padding;
  }
}

// How the inputs that come from other inputs are computed, except text_rows (see below).
constexpr struct {
  Input input;
  void (*compute)(const Graph& graph, const SampleRows& rows);
} computed[] = {{Input::following, count_following}, {Input::position_rows, find_position_rows}};

const Tensor& tensor_of(const Graph& graph, Input input) { return graph.at(graph.inputs[input]); }

// The sum of a sample's bytes over the graph's inputs before number `end`.
uint64_t staged_before(const Graph& graph, size_t end) {
  uint64_t bytes = 0;
  for (size_t k = 0; k < end; ++k)
    if (graph.inputs.of[k] >= 0) bytes += tensor_of(graph, each_input[k]).bytes(1);
  return bytes;
}

// Whether the program takes the rows of texts, of those that are written for a sample.
bool is_taken(const Graph& graph, Input input) {
  const InputRow& row = input_row(input);
  return graph.texts > 0 && graph.inputs[input] >= 0 && row.written_rows() != row.rows;
}

SampleInput destination(const Graph& graph, Input input, std::byte* data, int64_t rows) {
  const Tensor& t = tensor_of(graph, input);
  return {data, t.format, rows, static_cast<int64_t>(t.shape.elements()) / t.rows};
}

template <class T>
void fill(std::span<T> numbers, InputDefault initial) {
  switch (initial) {
    case InputDefault::zero: std::fill(numbers.begin(), numbers.end(), T{0}); break;
    case InputDefault::one: std::fill(numbers.begin(), numbers.end(), T{1}); break;
    case InputDefault::ignored:
      std::fill(numbers.begin(), numbers.end(), static_cast<T>(kernels::ignored_target));
      break;
    case InputDefault::index: std::iota(numbers.begin(), numbers.end(), T{0}); break;
  }
}

void fill_with_default(const SampleInput& to, Input input) {
  const InputDefault initial = input_row(input).initial;
  if (to.format == Format::f32) fill(to.numbers<float>(), initial);
  else fill(to.numbers<int32_t>(), initial);
}

// The first rows of the first texts; -1 for those that the sample does not have.
void find_text_rows(std::span<const int32_t> positions, std::span<int32_t> text_rows) {
  size_t texts = 0;
  for (size_t row = 0; row < positions.size() && texts < text_rows.size(); ++row)
    if (positions[row] == 0) text_rows[texts++] = static_cast<int32_t>(row);
  std::fill(text_rows.begin() + static_cast<std::ptrdiff_t>(texts), text_rows.end(), -1);
}

// Refuses targets of rows that are not taken.
Status check_targets(std::span<const int32_t> targets, std::span<const int32_t> positions,
                     std::span<const int32_t> text_rows, uint64_t sample) {
  const auto refused = [&](size_t row, const std::string& why) {
    return Error{Code::bad_argument, "sample " + std::to_string(sample) + ": row " + std::to_string(row) +
                                         " has a target, " + why};
  };
  size_t next = 0;
  for (size_t row = 0; row < targets.size(); ++row) {
    const bool is_text = next < text_rows.size() && text_rows[next] == static_cast<int32_t>(row);
    next += is_text;
    if (is_text || targets[row] == kernels::ignored_target) continue;
    if (positions[row] != 0) return refused(row, "but is not the first one of a text");
    return refused(row, "but the plan has room for the first " + std::to_string(text_rows.size()) +
                            " texts of a sample (texts)");
  }
  return ok();
}

}  // namespace

void SampleInputs::reserve(const Programs& programs, const Execution& execution, const Stream& stream) {
  const Graph& graph = *execution.graph;
  const auto samples = static_cast<size_t>(std::max(programs.micro_first.samples, programs.evaluate.samples));
  if (graph.texts > 0) {
    for (const Input input : each_input)
      if (is_taken(graph, input))
        of_rows_[static_cast<size_t>(input)].resize(
            tensor_of(graph, input).row_bytes() *
            static_cast<size_t>(graph.size_of(input_row(input).written_rows())));
    text_rows_.resize(samples * static_cast<size_t>(graph.texts));
  }
  if (stream.on_host(execution.arena)) return;
  staged_.resize(samples * staged_before(graph, input_count));
}

std::span<int32_t> SampleInputs::text_rows(uint64_t sample, const Graph& graph) {
  const auto texts = static_cast<size_t>(graph.texts);
  return std::span(text_rows_).subspan(sample * texts, texts);
}

// Copies the rows of texts of the inputs that the source wrote for every row.
void SampleInputs::take(const Graph& graph, uint64_t index, const Places& places) {
  const std::span<const int32_t> rows = text_rows(index, graph);
  for (size_t k = 0; k < input_count; ++k) {
    const Input input = each_input[k];
    if (!places[k] || !is_taken(graph, input)) continue;
    const size_t bytes = tensor_of(graph, input).row_bytes();
    for (size_t text = 0; text < rows.size(); ++text) {
      std::byte* const to = places[k] + text * bytes;
      if (rows[text] >= 0)
        std::memcpy(to, of_rows_[k].data() + static_cast<size_t>(rows[text]) * bytes, bytes);
      else fill_with_default(destination(graph, input, to, 1), input);
    }
  }
  std::memcpy(places[static_cast<size_t>(Input::text_rows)], rows.data(), rows.size_bytes());
}

Status SampleInputs::load_sample(const Graph& graph, const Places& places, const SampleSource& source,
                                 uint64_t index, uint64_t sample, bool exists) {
  SampleRows rows;
  rows.target_row = graph.head.target_row;
  for (size_t k = 0; k < input_count; ++k) {
    const Input input = each_input[k];
    if (!places[k]) continue;
    rows[input] = destination(graph, input, is_taken(graph, input) ? of_rows_[k].data() : places[k],
                              graph.size_of(input_row(input).written_rows()));
    if (input_row(input).source != InputSource::inputs) fill_with_default(rows[input], input);
  }
  if (exists) STW_TRY(source(sample, rows));
  for (const auto& [input, compute] : computed)
    if (rows[input].data) compute(graph, rows);
  if (graph.texts == 0) return ok();
  const auto positions = rows.integers(Input::positions), of_texts = text_rows(index, graph);
  find_text_rows(positions, of_texts);
  STW_TRY(check_targets(rows.integers(Input::targets), positions, of_texts, sample));
  take(graph, index, places);
  return ok();
}

Status SampleInputs::load(const Program& program, const Execution& execution, Stream& stream,
                          const SampleSource& source, uint64_t first, uint64_t samples) {
  const Graph& graph = *execution.graph;
  const auto count = static_cast<uint64_t>(program.samples);
  const bool direct = stream.on_host(execution.arena) != nullptr;
  const auto place = [&](size_t k, uint64_t s) -> std::byte* {
    const int buffer = program.inputs.of[k];
    if (buffer < 0) return nullptr;
    const uint64_t before = s * tensor_of(graph, each_input[k]).bytes(1);
    if (direct) return execution.rows<std::byte>(program, buffer) + before;
    return staged_.data() + staged_before(graph, k) * count + before;
  };
  for (uint64_t s = 0; s < count; ++s) {
    Places places;
    for (size_t k = 0; k < input_count; ++k) places[k] = place(k, s);
    STW_TRY(load_sample(graph, places, source, s, first + s, first + s < samples));
  }
  for (size_t k = 0; !direct && k < input_count; ++k)
    if (program.inputs.of[k] >= 0)
      stream.upload(execution.rows<std::byte>(program, program.inputs.of[k]), place(k, 0),
                    tensor_of(graph, each_input[k]).bytes(1) * count);
  return ok();
}

}  // namespace stw
