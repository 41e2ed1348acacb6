// Readers of what transformers and PEFT computed (tests/golden), and how far numbers are from it.
#pragma once
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

// The bias beside that of an encoder's keys; empty for any other parameter.
inline std::string bias_of_queries(std::string name) {
  for (const auto& [key, query] : {std::pair{".key.bias", ".query.bias"}, {".k_lin.bias", ".q_lin.bias"}})
    if (name.ends_with(key)) return name.replace(name.size() - std::string_view(key).size(), std::string::npos, query);
  return {};
}

}  // namespace stw::testing_tools
