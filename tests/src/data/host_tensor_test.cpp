#include "src/data/host_tensor.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace stw::host_tensor_test {
namespace {

Graph graph_of(int64_t tokens, int64_t labels) {
  Graph graph;
  graph.sequence = tokens;
  graph.head.task = Task::labels;
  graph.head.outputs = labels;
  return graph;
}

// Two samples of at most three tokens, each of which has a matrix (labels, labels).
struct Matrices {
  std::vector<float> numbers = std::vector<float>(2 * 3 * 4 * 8);
  int64_t shape[4] = {2, 3, 4, 4};
  int64_t strides[4] = {96, 32, 2, 8};  // transposed matrices, whose rows have gaps
  DLManagedTensorVersioned managed{};
  HostShape expected{2};
  HostTensor tensor;
  Matrices() {
    std::iota(numbers.begin(), numbers.end(), 0.0f);
    managed.version = {1, 0};
    managed.dl_tensor.data = numbers.data();
    managed.dl_tensor.device = {kDLCPU, 0};
    managed.dl_tensor.ndim = 4;
    managed.dl_tensor.dtype = {kDLFloat, 32, 1};
    managed.dl_tensor.shape = shape;
    const Graph graph = graph_of(3, 4);
    for (const Dimension d : {Dimension::tokens, Dimension::labels, Dimension::labels, Dimension::none})
      expected.add(d, graph);
  }
  std::string put() {
    const Status status = put_tensor("matrices", &managed, Format::f32, expected, tensor);
    return status ? "" : status.error().message;
  }
  std::vector<float> row(int dimensions, int64_t sample, int64_t token) const {
    std::vector<float> all;
    tensor.for_elements<float>(dimensions, sample, token, [&](float x) { all.push_back(x); });
    return all;
  }
};

TEST(HostTensor, RowsOfAnyShapeAreReadInOrder) {
  Matrices dense;
  ASSERT_EQ(dense.put(), "");
  for (int64_t sample = 0; sample < 2; ++sample)
    for (int64_t token = 0; token < 3; ++token) {
      std::vector<float> expected(16);
      std::iota(expected.begin(), expected.end(), static_cast<float>((sample * 3 + token) * 16));
      EXPECT_EQ(dense.row(2, sample, token), expected);
    }
  EXPECT_EQ(dense.row(1, 1, 2).size(), 48u) << "all of a sample";
  EXPECT_EQ(dense.row(1, 1, 2)[0], 48);

  Matrices strided;
  strided.managed.dl_tensor.strides = strided.strides;
  ASSERT_EQ(strided.put(), "");
  for (int64_t sample = 0; sample < 2; ++sample)
    for (int64_t token = 0; token < 3; ++token)
      for (int64_t i = 0; i < 4; ++i)
        for (int64_t j = 0; j < 4; ++j)
          EXPECT_EQ(strided.row(2, sample, token)[static_cast<size_t>(4 * i + j)],
                    static_cast<float>(96 * sample + 32 * token + 2 * i + 8 * j));
  EXPECT_EQ(strided.tensor.at<float>(1, 2), 96 + 64);
}

TEST(HostTensor, OtherShapesAreRefused) {
  const auto message = [](int rank, const std::vector<int64_t>& shape) {
    Matrices m;
    std::copy(shape.begin(), shape.end(), m.shape);
    m.managed.dl_tensor.ndim = rank;
    return m.put();
  };
  EXPECT_EQ(message(4, {1, 2, 4, 4}), "") << "fewer samples and tokens";
  EXPECT_EQ(message(3, {2, 3, 4}),
            "batch: matrices: expected four dimensions (samples, tokens, labels, labels), found 3");
  for (const auto& [shape, found] : {std::pair{std::vector<int64_t>{3, 3, 4, 4}, "(3, 3, 4, 4)"},
                                     {{2, 4, 4, 4}, "(2, 4, 4, 4)"},
                                     {{2, 3, 4, 3}, "(2, 3, 4, 3)"},
                                     {{2, 0, 4, 4}, "(2, 0, 4, 4)"}})
    EXPECT_EQ(message(4, shape),
              std::string("batch: matrices: expected (1 to 2, 1 to 3, 4, 4), found ") + found);
  Matrices m;
  ASSERT_EQ(m.put(), "");
  EXPECT_EQ(m.put(), "batch: matrices: the name appears twice");
}

}  // namespace
}  // namespace stw::host_tensor_test
