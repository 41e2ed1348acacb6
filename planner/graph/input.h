// The table of inputs: the numbers that a sample brings, one for each of its rows, or as many as there are labels. A graph has those inputs that its model and numerics
// need. To add an input, add its row here and fill it in src/data/batch.cpp and src/data/dataset.cpp, or in src/execute/sample_inputs.cpp if it follows
// from other inputs. Memory, copies to a device and checks need no change.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>


namespace stw {

enum class Input : uint8_t {
  tokens,
  targets,       // what the loss compares with: tokens, or labels
  positions,     // of a token in its document: attention stays inside a document
  weights,       // of a token in the loss
  reference,     // log-probabilities that a preference compares with
  token_types,   // 0 for tokens of a first text, 1 for those of a second one
  following,     // how many tokens of its document come after a token
  position_rows, // a token's position + Graph::first_position: its row in a table of positions whose first rows are unused
  values,        // of all labels, where a target says that the row has some
};
inline constexpr size_t input_count = 9;

struct InputRow {
  const char* name;
  bool is_float;   // f32; else i32
  bool of_loss;    // nothing but the loss reads it
  bool of_labels = false;   // a row has a number for each label, else one
};
inline constexpr std::array<InputRow, input_count> input_rows{{
  {"tokens", false, false}, {"targets", false, true}, {"positions", false, false}, {"weights", true, true},
  {"reference", true, true}, {"token_types", false, false}, {"following", false, false}, {"position_rows", false, false},
  {"values", true, true, true},
}};
inline constexpr uint64_t input_element_bytes = 4;   // of all of them
inline const InputRow& input_row(Input input) { return input_rows[static_cast<size_t>(input)]; }

// Which token of a document a classifier's label is the target of. every_token: each has a label of its own.
enum class LabelPlace : uint8_t { last_token, first_token, every_token };

// A number for each input of the table, -1 where there is none: a graph's tensors, a program's buffers.
struct InputIndices {
  std::array<int, input_count> of;
  constexpr InputIndices() { of.fill(-1); }
  int operator[](Input input) const { return of[static_cast<size_t>(input)]; }
  int& operator[](Input input) { return of[static_cast<size_t>(input)]; }
};

}  // namespace stw
