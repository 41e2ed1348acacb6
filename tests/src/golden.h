// Readers of what transformers and PEFT computed (tests/golden), and how far numbers are from it.
#pragma once
#include <algorithm>
#include <cmath>

#include "tests/src/small_trainer.h"

namespace stw::testing_tools {

inline std::string folder_of(const std::string& name) { return std::string(STW_SOURCE_ROOT "/tests/golden/") + name; }

template <class T>
std::vector<T> read_tensor(const SafetensorsReader& reader, const std::string& name) {
  const SafetensorsInfo* info = reader.find(name);
  if (!info) {
    ADD_FAILURE() << "no tensor " << name;
    return {};
  }
  std::vector<T> values(info->bytes / sizeof(T));
  EXPECT_TRUE(reader.read(*info, 0, std::as_writable_bytes(std::span(values))));
  return values;
}

// max|difference| / max|reference|
template <class A, class B>
double relative(const A* actual, const B* reference, size_t count) {
  double most = 0, scale = 0;
  for (size_t i = 0; i < count; ++i) {
    const double d = std::abs(static_cast<double>(actual[i]) - static_cast<double>(reference[i]));
    if (std::isnan(d)) return d;
    most = std::max(most, d);
    scale = std::max(scale, std::abs(static_cast<double>(reference[i])));
  }
  return most / scale;
}

// Values of a parameter, in the graph's order of rows, as files have them.
template <class T>
std::vector<T> in_file_order(const Graph& graph, const std::string& parameter, const std::vector<T>& values) {
  const auto is_named = [&](const Tensor& t) { return t.kind == Kind::parameter && t.name == parameter; };
  const auto found = std::find_if(graph.tensors.begin(), graph.tensors.end(), is_named);
  EXPECT_NE(found, graph.tensors.end()) << parameter;
  const uint64_t heads = found->layout.heads, parts = found->layout.parts, length = values.size() / (heads * parts);
  std::vector<T> moved;
  for (uint64_t head = 0; head < heads; ++head)
    for (uint64_t part = 0; part < parts; ++part) {
      const auto from = values.begin() + static_cast<std::ptrdiff_t>((part * heads + head) * length);
      moved.insert(moved.end(), from, from + static_cast<std::ptrdiff_t>(length));
    }
  return moved;
}

// The bias beside that of an encoder's keys; empty for any other parameter.
inline std::string bias_of_queries(std::string name) {
  for (const auto& [key, query] : {std::pair{".key.bias", ".query.bias"}, {".k_lin.bias", ".q_lin.bias"}})
    if (name.ends_with(key)) return name.replace(name.size() - std::string_view(key).size(), std::string::npos, query);
  return {};
}

}  // namespace stw::testing_tools
