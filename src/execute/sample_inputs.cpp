#include "src/execute/sample_inputs.h"

#include <algorithm>
#include <numeric>

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

// Bytes of an input for each row of a sample.
uint64_t row_bytes(const Graph& graph, Input input) {
  return static_cast<uint64_t>(graph.input_width(input)) * input_element_bytes;
}

// The sum of row_bytes() over the graph's inputs before this one.
uint64_t staged_before(const Graph& graph, size_t input) {
  uint64_t bytes = 0;
  for (size_t k = 0; k < input; ++k)
    bytes += graph.inputs.of[k] >= 0 ? row_bytes(graph, static_cast<Input>(k)) : 0;
  return bytes;
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
  if (stream.on_host(execution.arena)) return;
  const int64_t samples = std::max(programs.micro_first.samples, programs.evaluate.samples);
  staged_.resize(static_cast<size_t>(samples * execution.graph->sequence) *
                 staged_before(*execution.graph, input_count));
}

Status SampleInputs::load(const Program& program, const Execution& execution, Stream& stream,
                          const SampleSource& source, uint64_t first, uint64_t samples) {
  const Graph& graph = *execution.graph;
  const uint64_t t = static_cast<uint64_t>(graph.sequence),
                 rows_of_program = static_cast<uint64_t>(program.samples) * t;
  const bool direct = stream.on_host(execution.arena) != nullptr;
  const auto place = [&](Input input, uint64_t s) -> void* {
    const int buffer = program.inputs[input];
    if (buffer < 0) return nullptr;
    const uint64_t bytes = row_bytes(graph, input) * t;  // of a sample
    if (direct) return execution.rows<std::byte>(program, buffer) + s * bytes;
    return staged_.data() + staged_before(graph, static_cast<size_t>(input)) * rows_of_program + s * bytes;
  };
  for (uint64_t s = 0; s < static_cast<uint64_t>(program.samples); ++s) {
    const auto integers = [&](Input input) { return static_cast<int32_t*>(place(input, s)); };
    const auto floats = [&](Input input) { return static_cast<float*>(place(input, s)); };
    const SampleRows rows{integers(Input::tokens), integers(Input::targets), integers(Input::positions),
                          floats(Input::weights),  floats(Input::reference), integers(Input::token_types),
                          floats(Input::values),   graph.head.target_row,    graph.head.labels()};
    fill_with_defaults(rows, t);
    if (first + s < samples) {
      STW_TRY(source(first + s, rows));
    } else {
      std::fill_n(rows.tokens, t, 0);
      std::fill_n(rows.targets, t, kernels::ignored_target);
    }
    if (int32_t* const following = integers(Input::following)) count_following(rows.positions, following, t);
    if (int32_t* const position_rows = integers(Input::position_rows))
      find_position_rows(rows, static_cast<int32_t>(graph.first_position), t, position_rows);
  }
  for (size_t k = 0; !direct && k < input_count; ++k)
    if (program.inputs.of[k] >= 0)
      stream.upload(execution.rows<std::byte>(program, program.inputs.of[k]), place(static_cast<Input>(k), 0),
                    row_bytes(graph, static_cast<Input>(k)) * rows_of_program);
  return ok();
}

}  // namespace stw
