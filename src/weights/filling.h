// Initial values of a trainer's tensors: the model's parameters, in the formats of the graph, and tables of
// rotary angles.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/contract/sizes.h"
#include "src/device/device.h"
#include "src/execute/execute.h"
#include "src/weights/model.h"

namespace stw {

// The op that updates a parameter; null if the parameter is frozen.
const Op* update_of(const Graph& graph, int parameter);

// The constructor allocates everything, so that fill() and put() work even when the host has no memory left.
// Both write to the arena that the execution has at that time.
class Filling {
 public:
  // For put(). `most`: the largest number of values that one call of put() gets for a parameter that is not
  // fp32. fp32 values are copied without conversion, and their number has no limit.
  Filling(const Model& model, const Execution& execution, Stream& stream, uint64_t most)
      : Filling(model, execution, stream, 0, most < elements ? most : elements) {}
  // For fill().
  static Filling of_all(const Device& device, const Model& model, const Execution& execution, Stream& stream,
                        const Numerics& numerics);

  // Writes all initial values, except those that are 0: the arena holds zeros. Errors: those of reading the
  // model, and of the stream.
  Status fill();
  // Writes values of a parameter from its element `first` on. In a quantized parameter `first` must begin a
  // block.
  void put(size_t parameter, uint64_t first, const float* values, uint64_t count);

 private:
  static constexpr uint64_t elements = 1 << 16;  // processed at once
  static_assert(elements % kernels::weight_block == 0);
  Filling(const Model& model, const Execution& execution, Stream& stream, uint64_t values, uint64_t converted)
      : model_(model),
        execution_(execution),
        stream_(stream),
        values_(values),
        half_(converted),
        remainder_(converted),
        short_remainder_(converted),
        codes_(converted),
        scales_(ceil_div(converted, kernels::weight_block)) {}
  const Graph& graph() const { return *execution_.graph; }
  kernels::Parallel threads() const { return pool_ ? pool_->parallel() : execution_.parallel; }
  Status read(const Tensor& tensor, uint64_t first, uint64_t count);
  // `count` is at most `elements`.
  void put_part(size_t parameter, uint64_t first, const float* values, uint64_t count);
  void put_codes(int tensor, uint64_t first, uint64_t count);  // uploads codes_ and scales_
  void put_table(const RotaryTables& tables, int tensor, double (*function)(double));

  const Model& model_;
  const Execution& execution_;
  Stream& stream_;
  std::vector<float> values_;
  std::vector<uint16_t> half_;  // from here on: values in the formats of the arena
  std::vector<int16_t> remainder_;
  std::vector<int8_t> short_remainder_;
  std::vector<uint8_t> codes_;
  std::vector<float> scales_;
  // For a GPU, whose kernels use no host threads; null: the execution's threads.
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace stw
