// The table of inputs. An input gives each row of a sample one number, or one number for each label. With
// Graph::texts, the inputs that only the loss reads, and text_rows, have that many rows instead. A graph
// has the inputs that its model and numerics need. To add an input, add its row here, and fill it in
// src/data/batch.cpp and src/data/dataset.cpp, or in src/execute/sample_inputs.cpp if it follows from other
// inputs. Memory, copies to a device and checks need no change.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

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
  // The rows of a sample that have a target of a text (Graph::texts). They increase; -1 stands for no row,
  // and these come last.
  text_rows,
};
inline constexpr size_t input_count = 10;

struct InputRow {
  const char* name;
  bool is_float;           // f32; else i32
  bool of_loss;            // only the loss reads it
  bool of_labels = false;  // a row has a number for each label instead of one number
};
inline constexpr std::array<InputRow, input_count> input_rows{{
    {"tokens", false, false},
    {"targets", false, true},
    {"positions", false, false},
    {"weights", true, true},
    {"reference", true, true},
    {"token_types", false, false},
    {"following", false, false},
    {"position_rows", false, false},
    {"values", true, true, true},
    {"text_rows", false, false},
}};
inline constexpr uint64_t input_element_bytes = 4;  // the same for all inputs
inline const InputRow& input_row(Input input) { return input_rows[static_cast<size_t>(input)]; }

// A number for each input of the table, or -1 for none: a graph's tensors, or a program's buffers.
struct InputIndices {
  std::array<int, input_count> of;
  constexpr InputIndices() { of.fill(-1); }
  int operator[](Input input) const { return of[static_cast<size_t>(input)]; }
  int& operator[](Input input) { return of[static_cast<size_t>(input)]; }
};

}  // namespace stw
