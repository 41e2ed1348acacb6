// A tensor record is data: the format, whether the tensor is trained, which tensor it shares bytes with.
// Frozen, tied, quantized and adapter weights differ in the values of this record, not in code.
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/contract/formats.h"
#include "kernels/contract/sizes.h"
#include "kernels/contract/weight_codes.h"
#include "planner/graph/preference.h"

namespace stw {

using kernels::Format;
using kernels::is_quantized;
inline uint64_t element_bytes(Format format) {  // of formats that are not quantized
  constexpr uint64_t bytes[] = {4, 2, 2, 4, 1, 8, 2};
  assert(!is_quantized(format));
  return bytes[static_cast<int>(format)];
}

// The classes of the memory report. The planner later splits activations by lifetime, into saved and
// transient ones.
enum class MemoryClass : uint8_t {
  parameters,
  gradients,
  optimizer,
  saved_activations,
  transient,
  workspace,
  inputs,
};
inline constexpr int class_count = 7;
inline constexpr const char* class_names[class_count] = {
    "parameters", "gradients", "optimizer", "saved_activations", "transient", "workspace", "inputs"};
inline constexpr const char* class_titles[class_count] = {  // in words for users
    "parameters", "gradients", "optimizer", "saved activations", "transient", "workspace", "inputs"};

struct Shape {
  std::array<int64_t, 4> dims{};
  int rank = 0;
  Shape() = default;
  Shape(std::initializer_list<int64_t> d) {
    for (int64_t x : d) dims[rank++] = x;
  }
  int64_t operator[](int i) const { return dims[i]; }
  int64_t last() const { return dims[rank - 1]; }
  uint64_t elements() const {
    uint64_t n = 1;
    for (int i = 0; i < rank; ++i) n = size_mul(n, static_cast<uint64_t>(dims[i]));
    return n;
  }
  bool operator==(const Shape&) const = default;
};

// The inputs that a sample may have in addition to tokens and targets, and the loss of preference pairs.
struct GraphInputs {
  bool positions = false;  // of tokens in their documents: attention stays inside a document
  bool weights = false;    // of tokens in the loss; not together with a preference
  // Every two successive documents are a preference pair. Requires positions; requires the log-probabilities
  // of a reference model if has_reference(preference).
  Preference preference = Preference::none;
  // An encoder with an output for each text computes what only the loss reads for so many texts of a sample,
  // at most `sequence`. 0: for every row, so that a sample may hold any number of texts.
  int64_t texts = 0;
  bool operator==(const GraphInputs&) const = default;
};

// The order of a parameter's rows in files, if it differs from the graph's. The graph has `parts` runs of
// rows, for instance queries, keys and values, and each run has rows of every head. Files have the heads one
// after the other, and each head has its rows of every part.
struct WeightLayout {
  uint64_t heads = 1, parts = 1;
  // `count` elements that are contiguous in both orders, the first at `at`.
  struct Run {
    uint64_t at, count;
  };
  bool is_plain() const { return heads == 1 || parts == 1; }
  // Maps `count` consecutive elements of the graph's parameter, from `element` on, to the order of files.
  // Returns the position of the first one, and how many of them are consecutive there too. `size`: elements
  // of the parameter.
  Run in_file(uint64_t element, uint64_t count, uint64_t size) const {
    return run(element, count, size, heads, parts);
  }
  // The reverse: from the order of files to the graph's.
  Run in_graph(uint64_t element, uint64_t count, uint64_t size) const {
    return run(element, count, size, parts, heads);
  }
  bool operator==(const WeightLayout&) const = default;

 private:
  // From (outer, inner, length) to (inner, outer, length).
  Run run(uint64_t element, uint64_t count, uint64_t size, uint64_t inner, uint64_t outer) const {
    if (is_plain()) return {element, count};
    const uint64_t length = size / (heads * parts), piece = element / length, within = element % length;
    return {(piece % inner * outer + piece / inner) * length + within, std::min(count, length - within)};
  }
};

enum class Role : uint8_t {
  parameter,
  master,
  gradient,
  optimizer,
  constant,
  state,
  input,
  activation,
  cache
};
enum class Initializer : uint8_t { none, normal, ones, zeros };

struct Tensor {
  // For a parameter its name in the model's weight files; for an activation its name inside its block.
  std::string name;
  Role role = Role::activation;
  Format format = Format::f32;
  Shape shape;              // of one sample if `per_sample` is set
  bool per_sample = false;  // (samples, shape…)
  // Rows of a sample, if `per_sample` is set. Ops process this many rows. The bytes of a sample are a
  // multiple of it. Of a table: its rows (Graph::table_ops). Else 0.
  int64_t rows = 0;
  bool trainable = false;
  int tied_to = -1;     // shares the bytes of this tensor; has a gradient of its own
  int adapter_of = -1;  // a factor of the low-rank adapter of this parameter (adapters.h)
  // Saved in the adapters' file instead of the model's: the factors of adapters, and a classifier's head.
  bool of_adapters = false;
  // Parameters: the index among the model's parameters; it does not depend on optional inputs or adapters.
  // Gradients: the index of the parameter's use, in op order.
  int ordinal = -1;
  // Parameters: how they are updated (parameter_groups.h).
  double rate = 1;              // factor of the learning rate
  std::optional<double> decay;  // weight decay; empty: that of the run
  int state_bits = 0;           // 0: as Numerics::state_bits
  int segment = -1;             // activations: the segment that computes it
  bool chunked = false;         // holds the rows of one loss chunk only (logits and their gradient)
  bool tile_sums = false;       // sums of an activation's columns in tiles of rows (fuse.h)
  int64_t block = 1;       // optimizer states: elements of the parameter that share one element of the state
  int64_t row_stride = 0;  // activations: elements from one row to the next, if a row is padded
  Initializer initializer = Initializer::none;
  float init_std = 0;
  WeightLayout layout;  // parameters: the order of their rows in files
  bool operator==(const Tensor&) const = default;

  int64_t stride() const { return row_stride > 0 ? row_stride : shape.last(); }
  uint64_t bytes(int64_t samples) const {
    if (is_quantized(format))
      return kernels::weight_codes_bytes(weight_codes_of(format), static_cast<int64_t>(shape.elements()));
    uint64_t n = size_mul(row_stride > 0 ? size_mul(shape.elements() / static_cast<uint64_t>(shape.last()),
                                                    static_cast<uint64_t>(row_stride))
                                         : shape.elements(),
                          element_bytes(format));
    return per_sample ? size_mul(n, static_cast<uint64_t>(samples)) : n;
  }
  uint64_t row_bytes() const { return bytes(1) / static_cast<uint64_t>(rows); }
  // Bytes of this tensor for `elements` elements of a parameter, counted from the first one or from a
  // multiple of `block`.
  uint64_t part_bytes(int64_t elements) const {
    return size_mul(ceil_div(static_cast<uint64_t>(elements), static_cast<uint64_t>(block)),
                    element_bytes(format));
  }
};

}  // namespace stw
