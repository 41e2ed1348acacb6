#include "src/execute/sample_inputs.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

namespace stw {

namespace {

// For every row of a sample, the number of later rows in its document. A document begins where positions
// restart at 0.
void count_following(const int32_t* positions, int32_t* following, uint64_t rows) {
  for (uint64_t i = rows; i-- > 0;)
    following[i] = i + 1 == rows || positions[i + 1] == 0 ? 0 : following[i + 1] + 1;
}

// Numbers the rows as transformers does: the padding token, `first` - 1, has the row of that number wherever
// it stands in a text, and later tokens do not count it.
void find_position_rows(const SampleRows& rows, int32_t first, uint64_t count, int32_t* position_rows) {
  int32_t padding = 0;  // padding tokens so far in the document
  for (uint64_t i = 0; i < count; ++i) {
    if (rows.positions[i] == 0) padding = 0;
    const bool is_padding = rows.tokens[i] == first - 1;
    position_rows[i] = is_padding ? first - 1 : first + rows.positions[i] - padding;
    padding += is_padding;
  }
}

// Bytes of an input of a sample.
uint64_t sample_bytes(const Graph& graph, size_t input) { return graph.at(graph.inputs.of[input]).bytes(1); }

// The sum of sample_bytes() over the graph's inputs before this one.
uint64_t staged_before(const Graph& graph, size_t input) {
  uint64_t bytes = 0;
  for (size_t k = 0; k < input; ++k) bytes += graph.inputs.of[k] >= 0 ? sample_bytes(graph, k) : 0;
  return bytes;
}

// Whether a source writes the input for every row of a sample, of which the program takes those of texts.
bool is_taken(const Graph& graph, size_t input) {
  return graph.texts > 0 && graph.inputs.of[input] >= 0 && input_rows[input].of_loss;
}

// The first rows of the first texts; -1 for those that the sample does not have.
void find_text_rows(const int32_t* positions, uint64_t rows, std::span<int32_t> text_rows) {
  size_t texts = 0;
  for (uint64_t row = 0; row < rows && texts < text_rows.size(); ++row)
    if (positions[row] == 0) text_rows[texts++] = static_cast<int32_t>(row);
  std::fill(text_rows.begin() + static_cast<std::ptrdiff_t>(texts), text_rows.end(), -1);
}

// Refuses targets of rows that are not taken.
Status check_targets(const int32_t* targets, const int32_t* positions, uint64_t rows,
                     std::span<const int32_t> text_rows, uint64_t sample) {
  const auto refused = [&](uint64_t row, const std::string& why) {
    return Error{Code::bad_argument, "sample " + std::to_string(sample) + ": row " + std::to_string(row) +
                                         " has a target, " + why};
  };
  size_t next = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    const bool is_text = next < text_rows.size() && text_rows[next] == static_cast<int32_t>(row);
    next += is_text;
    if (is_text || targets[row] == kernels::ignored_target) continue;
    if (positions[row] != 0) return refused(row, "but is not the first one of a text");
    return refused(row, "but the plan has room for the first " + std::to_string(text_rows.size()) +
                            " texts of a sample (texts)");
  }
  return ok();
}

void fill_with_defaults(const SampleRows& rows, uint64_t count) {
  if (rows.positions) std::iota(rows.positions, rows.positions + count, 0);
  if (rows.weights) std::fill_n(rows.weights, count, 1.0f);
  if (rows.reference) std::fill_n(rows.reference, count, 0.0f);
  if (rows.token_types) std::fill_n(rows.token_types, count, 0);
  if (rows.values) std::fill_n(rows.values, count * static_cast<uint64_t>(rows.value_count), 0.0f);
}

}  // namespace

void SampleInputs::reserve(const Programs& programs, const Execution& execution, const Stream& stream) {
  const Graph& graph = *execution.graph;
  const auto samples = static_cast<size_t>(std::max(programs.micro_first.samples, programs.evaluate.samples));
  if (graph.texts > 0) {
    for (size_t k = 0; k < input_count; ++k)
      if (is_taken(graph, k))
        of_rows_[k].resize(sample_bytes(graph, k) / static_cast<size_t>(graph.texts) *
                           static_cast<size_t>(graph.sequence));
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
    if (!places[k] || !is_taken(graph, k)) continue;
    const size_t bytes = sample_bytes(graph, k) / rows.size();  // of a row
    for (size_t text = 0; text < rows.size(); ++text) {
      std::byte* const to = places[k] + text * bytes;
      if (rows[text] >= 0)
        std::memcpy(to, of_rows_[k].data() + static_cast<size_t>(rows[text]) * bytes, bytes);
      else std::memset(to, 0, bytes);
    }
  }
  constexpr auto targets = static_cast<size_t>(Input::targets);
  for (size_t text = 0; places[targets] && text < rows.size(); ++text)
    if (rows[text] < 0) reinterpret_cast<int32_t*>(places[targets])[text] = kernels::ignored_target;
  std::memcpy(places[static_cast<size_t>(Input::text_rows)], rows.data(), rows.size_bytes());
}

Status SampleInputs::load_sample(const Graph& graph, const Places& places, const SampleSource& source,
                                 uint64_t index, uint64_t sample, bool exists) {
  const auto t = static_cast<uint64_t>(graph.sequence);
  const auto at = [&](Input input) {
    const auto k = static_cast<size_t>(input);
    return places[k] && is_taken(graph, k) ? of_rows_[k].data() : places[k];
  };
  const auto integers = [&](Input input) { return reinterpret_cast<int32_t*>(at(input)); };
  const auto floats = [&](Input input) { return reinterpret_cast<float*>(at(input)); };
  const SampleRows rows{integers(Input::tokens), integers(Input::targets), integers(Input::positions),
                        floats(Input::weights),  floats(Input::reference), integers(Input::token_types),
                        floats(Input::values),   graph.head.target_row,    graph.head.labels()};
  fill_with_defaults(rows, t);
  if (exists) {
    STW_TRY(source(sample, rows));
  } else {
    std::fill_n(rows.tokens, t, 0);
    std::fill_n(rows.targets, t, kernels::ignored_target);
  }
  if (int32_t* const following = integers(Input::following)) count_following(rows.positions, following, t);
  if (int32_t* const position_rows = integers(Input::position_rows))
    find_position_rows(rows, static_cast<int32_t>(graph.first_position), t, position_rows);
  if (graph.texts == 0) return ok();
  find_text_rows(rows.positions, t, text_rows(index, graph));
  if (rows.targets) STW_TRY(check_targets(rows.targets, rows.positions, t, text_rows(index, graph), sample));
  take(graph, index, places);
  return ok();
}

Status SampleInputs::load(const Program& program, const Execution& execution, Stream& stream,
                          const SampleSource& source, uint64_t first, uint64_t samples) {
  const Graph& graph = *execution.graph;
  const auto count = static_cast<uint64_t>(program.samples);
  const bool direct = stream.on_host(execution.arena) != nullptr;
  const auto place = [&](size_t input, uint64_t s) -> std::byte* {
    const int buffer = program.inputs.of[input];
    if (buffer < 0) return nullptr;
    const uint64_t before = s * sample_bytes(graph, input);
    if (direct) return execution.rows<std::byte>(program, buffer) + before;
    return staged_.data() + staged_before(graph, input) * count + before;
  };
  for (uint64_t s = 0; s < count; ++s) {
    Places places;
    for (size_t k = 0; k < input_count; ++k) places[k] = place(k, s);
    STW_TRY(load_sample(graph, places, source, s, first + s, first + s < samples));
  }
  for (size_t k = 0; !direct && k < input_count; ++k)
    if (program.inputs.of[k] >= 0)
      stream.upload(execution.rows<std::byte>(program, program.inputs.of[k]), place(k, 0),
                    sample_bytes(graph, k) * count);
  return ok();
}

}  // namespace stw
