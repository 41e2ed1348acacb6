// Readers of reference values from transformers and PEFT (tests/golden), and relative errors.
#pragma once
#include <algorithm>
#include <cmath>

#include "tests/src/small_trainer.h"

namespace stw::testing_tools {

inline std::string folder_of(const std::string& name) {
  return std::string(STW_SOURCE_ROOT "/tests/golden/") + name;
}

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

// Puts a parameter's values from the graph's order of rows into the files' order.
template <class T>
std::vector<T> in_file_order(const Graph& graph, const std::string& parameter, const std::vector<T>& values) {
  const auto is_named = [&](const Tensor& t) { return t.role == Role::parameter && t.name == parameter; };
  const auto found = std::find_if(graph.tensors.begin(), graph.tensors.end(), is_named);
  EXPECT_NE(found, graph.tensors.end()) << parameter;
  const uint64_t heads = found->layout.heads, parts = found->layout.parts,
                 length = values.size() / (heads * parts);
  std::vector<T> moved;
  for (uint64_t head = 0; head < heads; ++head)
    for (uint64_t part = 0; part < parts; ++part) {
      const auto from = values.begin() + static_cast<std::ptrdiff_t>((part * heads + head) * length);
      moved.insert(moved.end(), from, from + static_cast<std::ptrdiff_t>(length));
    }
  return moved;
}

// For an encoder's key bias: a parameter of the same attention, whose gradient is not zero. Empty for any
// other parameter.
inline std::string beside_key_bias(std::string name) {
  for (const auto& [key, other] : {std::pair{".key.bias", ".query.bias"},
                                   {".k_lin.bias", ".q_lin.bias"},
                                   {"key_proj.bias", "key_proj.weight"}})
    if (name.ends_with(key))
      return name.replace(name.size() - std::string_view(key).size(), std::string::npos, other);
  return {};
}

// A trainer for one step of a model whose loss and gradients transformers or PEFT computed.
class GoldenTrainer {
 public:
  GoldenTrainer(std::shared_ptr<const Model> model, std::shared_ptr<const Planned> planned)
      : model_(std::move(model)) {
    TrainerOptions options;
    options.gradient_hook = [this, planned](const GradientView& view) {
      sums_ = gradients_in(*planned, view);
      return true;
    };
    trainer_ = trainer_for(model_, planned, options);
  }
  GoldenTrainer(const GoldenTrainer&) = delete;
  Trainer* operator->() { return trainer_.get(); }

  // `expected` has the mean "loss", and "grad.PARAMETER" for every trained parameter.
  void expect_step(const GlobalBatch& batch, const SafetensorsReader& expected) {
    const auto result = trainer_->step(batch.source(), batch.samples(), 1e-3);
    ASSERT_TRUE(result) << result.error().message;
    const double loss = read_tensor<double>(expected, "loss").at(0);
    EXPECT_NEAR(result->loss, loss, 1e-6 * loss);
    EXPECT_EQ(result->targets, batch.target_count());
    const auto is_gradient = [](const SafetensorsInfo& tensor) { return tensor.name.starts_with("grad."); };
    EXPECT_EQ(sums_.size(), static_cast<size_t>(std::count_if(expected.tensors().begin(),
                                                              expected.tensors().end(), is_gradient)));
    for (auto& [name, values] : sums_) {
      for (double& v : values) v /= static_cast<double>(batch.target_count());
      const auto theirs = read_tensor<float>(expected, "grad." + name);
      ASSERT_EQ(values.size(), theirs.size()) << name;
      const std::vector<double> ours = in_file_order(model_->graph(), name, values);
      // The gradient of a key bias is 0 but for rounding, as softmax cancels the bias. It is not if keys are
      // multiplied with relative positions.
      const auto most_of = [](const std::vector<float>& list) {
        double most = 0;
        for (const float x : list) most = std::max(most, std::abs(static_cast<double>(x)));
        return most;
      };
      const std::string other = beside_key_bias(name);
      double most = most_of(theirs);
      if (!other.empty())
        if (const double scale = most_of(read_tensor<float>(expected, "grad." + other)); most < 1e-9 * scale)
          most = scale;
      // So is that of a bias which adds one number to all logits of a softmax over tokens.
      if (most < 1e-12 && name.ends_with(".bias"))
        most = most_of(read_tensor<float>(expected, "grad." + name.substr(0, name.size() - 4) + "weight"));
      for (size_t i = 0; i < ours.size(); ++i)
        ASSERT_LE(std::abs(ours[i] - static_cast<double>(theirs[i])), 1e-5 * most)
            << name << ", element " << i;
    }
  }

 private:
  std::shared_ptr<const Model> model_;
  GradientSums sums_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace stw::testing_tools
