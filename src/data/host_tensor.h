// A tensor that the host passes, viewed without a copy.
#pragma once
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "include/stowage/dlpack.h"
#include "planner/base/result.h"
#include "planner/graph/graph.h"

namespace stw {

// A tensor of float32 or int32 in host memory: (samples), (samples, columns), or with more dimensions, where
// the first two are samples and their rows.
struct HostTensor {
  // Those of samples and of a tensor of the graph.
  static constexpr size_t most_dimensions = 1 + std::tuple_size_v<decltype(Shape::dims)>;
  const std::byte* data = nullptr;
  Format format = Format::i32;
  int rank = 0;
  std::array<int64_t, most_dimensions> shape{1, 1, 1, 1, 1};
  std::array<int64_t, most_dimensions> strides{};  // in elements

  int64_t samples() const { return shape[0]; }
  int64_t columns() const { return shape[1]; }
  template <class T>
  T at(int64_t sample, int64_t column = 0) const {
    return element<T>(sample * strides[0] + column * strides[1]);
  }
  // Calls use(element) for the elements with these first `dimensions` (1 or 2) indices, in order.
  template <class T, class Use>
  void for_elements(int dimensions, int64_t sample, int64_t row, const Use& use) const {
    each<T>(sample * strides[0] + (dimensions > 1 ? row * strides[1] : 0), dimensions, use);
  }

 private:
  template <class T>
  T element(int64_t index) const {
    assert(format == (std::is_same_v<T, float> ? Format::f32 : Format::i32));
    return reinterpret_cast<const T*>(data)[index];
  }
  template <class T, class Use>
  void each(int64_t index, int dimension, const Use& use) const {
    if (dimension == rank) return use(element<T>(index));
    const auto d = static_cast<size_t>(dimension);
    for (int64_t i = 0; i < shape[d]; ++i) each<T>(index + i * strides[d], dimension + 1, use);
  }
};

struct HostDimension {
  const char* name;
  int64_t size;
  bool may_be_less;  // 1 to `size`; else `size`
  bool allows(int64_t n) const { return n == size || (may_be_less && n >= 1 && n < size); }
};

// The shape that a tensor must have.
struct HostShape {
  std::array<HostDimension, HostTensor::most_dimensions> dimensions{};
  size_t rank = 0;

  explicit HostShape(int64_t samples) : dimensions{{{"samples", samples, true}}}, rank(1) {}
  // A graph's dimension. Samples may have fewer tokens. `none` adds nothing.
  HostShape& add(Dimension dimension, const Graph& graph);
  std::span<const HostDimension> all() const { return std::span(dimensions).first(rank); }
  // In words, for messages: "two dimensions (samples, tokens)", "(1 to 4, 1 to 16)".
  std::string rank_text() const;
  std::string size_text() const;
};

Error wrong_tensor(const std::string& name, const std::string& what);  // of a batch
// Checks a tensor's type and shape. Points `to`, which must be unused, to its numbers. Errors: bad_argument,
// with `name` and the expected and the found value.
Status put_tensor(const std::string& name, const DLManagedTensorVersioned* managed, Format format,
                  const HostShape& expected, HostTensor& to);

}  // namespace stw
