// The table of inputs. A row says which numbers an input has and where they come from. Tensors of graphs,
// memory, copies to a device, default values and the tensors of a host's batch follow from the row.
//
// To add an input, add its row here. A model gets its tensor from GraphBuilder::add_input. If a shape needs a
// number that Dimension lacks, add it there and to Graph::size_of. src/data/dataset.cpp fills the input from
// files. If it follows from other inputs, src/execute/sample_inputs.cpp computes it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/contract/formats.h"

namespace stw {

enum class Input : uint8_t {
  tokens,
  targets,      // tokens or labels that the loss compares with
  positions,    // of a token in its document; attention stays inside a document
  weights,      // of a token in the loss
  reference,    // log-probabilities that a preference compares with
  token_types,  // 0 for tokens of a first text, 1 for those of a second one
  following,    // number of tokens that follow a token in its document
  // A token's row in the table of positions: Graph::first_position + the number of tokens before it in its
  // document, without padding tokens. These have the row Graph::first_position - 1; earlier rows are unused.
  position_rows,
  values,  // a number for each label; used if the row's target says that the row has values
  // With Graph::texts: the rows of a sample that have a target of a text. They increase; -1 stands for no
  // row, and these come last.
  text_rows,
};
inline constexpr size_t input_count = 10;

// A number that Graph::size_of returns. Shapes of inputs consist of such numbers.
enum class Dimension : uint8_t {
  none,
  tokens,      // tokens of a sample
  logit_rows,  // rows of logits in a sample: Graph::texts, or one for each token
  labels,
  vocabulary,
  token_types,
};
inline constexpr const char* dimension_words[] = {  // in messages, after a number
    "", "tokens", "rows of logits", "labels", "tokens of the vocabulary", "types of tokens"};
inline constexpr const char* words_of(Dimension dimension) {
  return dimension_words[static_cast<size_t>(dimension)];
}

// When a graph has an input.
enum class InputDemand : uint8_t {
  always,
  request,  // if the request for a plan asks for it (GraphInputs), or the model does
  model,    // if the model or its loss asks for it
};

// Where the numbers of an input come from.
enum class InputSource : uint8_t {
  sample,  // numbers that the sample has under the input's name
  labels,  // the sample's labels
  inputs,  // other inputs
};

// The number in rows to which the source of a sample writes nothing.
enum class InputDefault : uint8_t {
  zero,
  one,
  ignored,  // kernels::ignored_target
  index,    // the index of the row in the sample
};

struct InputRow {
  const char* name;
  kernels::Format format = kernels::Format::i32;
  // The shape of a sample: its rows, and the shape of a row. A row without a shape is one number.
  Dimension rows = Dimension::tokens;
  std::array<Dimension, 3> shape{};
  bool of_loss = false;  // only the loss reads it
  InputDemand demand = InputDemand::model;
  InputSource source = InputSource::sample;
  InputDefault initial = InputDefault::zero;
  Dimension below = Dimension::none;  // if set, the numbers of a sample are at least 0 and below this one

  // The rows that are written for a sample. Some logits may be computed for texts only, but a sample has what
  // they are compared with for each token, and a program takes the rows of texts.
  constexpr Dimension written_rows() const {
    return rows == Dimension::logit_rows && source != InputSource::inputs ? Dimension::tokens : rows;
  }
};
inline constexpr std::array<InputRow, input_count> input_rows{{
    {.name = "tokens", .demand = InputDemand::always, .below = Dimension::vocabulary},
    {.name = "targets",
     .rows = Dimension::logit_rows,
     .of_loss = true,
     .demand = InputDemand::always,
     .initial = InputDefault::ignored},
    {.name = "positions", .demand = InputDemand::request, .initial = InputDefault::index},
    {.name = "weights",
     .format = kernels::Format::f32,
     .rows = Dimension::logit_rows,
     .of_loss = true,
     .demand = InputDemand::request,
     .initial = InputDefault::one},
    {.name = "reference",
     .format = kernels::Format::f32,
     .rows = Dimension::logit_rows,
     .of_loss = true,
     .demand = InputDemand::request},
    {.name = "token_types", .below = Dimension::token_types},
    {.name = "following", .source = InputSource::inputs},
    {.name = "position_rows", .source = InputSource::inputs},
    {.name = "values",
     .format = kernels::Format::f32,
     .rows = Dimension::logit_rows,
     .shape = {Dimension::labels},
     .of_loss = true,
     .source = InputSource::labels},
    {.name = "text_rows", .rows = Dimension::logit_rows, .source = InputSource::inputs},
}};
inline constexpr const InputRow& input_row(Input input) { return input_rows[static_cast<size_t>(input)]; }

// All inputs, in the order of the table.
inline constexpr std::array<Input, input_count> each_input = [] {
  std::array<Input, input_count> all{};
  for (size_t k = 0; k < input_count; ++k) all[k] = static_cast<Input>(k);
  return all;
}();

// A number for each input of the table, or -1 for none: a graph's tensors, or a program's buffers.
struct InputIndices {
  std::array<int, input_count> of;
  constexpr InputIndices() { of.fill(-1); }
  int operator[](Input input) const { return of[static_cast<size_t>(input)]; }
  int& operator[](Input input) { return of[static_cast<size_t>(input)]; }
};

}  // namespace stw
