// What a trainer's tensors start from: parameters of the model, in the formats in which the graph keeps them, and tables of angles,
// on the way into memory.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/base/sizes.h"
#include "src/device/device.h"
#include "src/execute/execute.h"
#include "src/weights/model.h"

namespace stw {

// The op that updates a parameter; null where it is frozen.
const Op* update_of(const Graph& graph, int parameter);

// Whoever has one can fill() and put() without any more memory, whatever the host has left: all that they take is taken here. It writes
// to where the execution has its arena by then.
class Filling {
 public:
  // For put() of at most so many values of a parameter; of one in fp32 of any number.
  Filling(const Model& model, const Execution& execution, Stream& stream, uint64_t most) : Filling(model, execution, stream, 0, most < elements ? most : elements) {}
  // For fill().
  static Filling of_all(const Device& device, const Model& model, const Execution& execution, Stream& stream, const Numerics& numerics);

  // All that creation puts there, but zeros. Errors: those of reading the model, and of the stream.
  Status fill();
  // Values of a parameter from its element `first` on, which begins a block where it is kept in codes.
  void put(size_t parameter, uint64_t first, const float* values, uint64_t count);

 private:
  static constexpr uint64_t elements = 1 << 16;   // at once
  static_assert(elements % quantized_block == 0);
  Filling(const Model& model, const Execution& execution, Stream& stream, uint64_t values, uint64_t converted)
      : model_(model), execution_(execution), stream_(stream), values_(values), half_(converted), remainder_(converted), short_remainder_(converted),
        codes_(converted), scales_(ceil_div(converted, quantized_block)) {}
  const Graph& graph() const { return *execution_.graph; }
  kernels::Parallel threads() const { return pool_ ? pool_->parallel() : execution_.parallel; }
  Status read(const Tensor& tensor, uint64_t first, uint64_t count);
  void put_part(size_t parameter, uint64_t first, const float* values, uint64_t count);   // at most `elements`
  void put_codes(int tensor, uint64_t first, uint64_t count);   // those of codes_ and scales_
  void put_table(const RotaryTables& tables, int tensor, double (*function)(double));

  const Model& model_;
  const Execution& execution_;
  Stream& stream_;
  std::vector<float> values_;
  std::vector<uint16_t> half_;   // as the arena stores them, like those below
  std::vector<int16_t> remainder_;
  std::vector<int8_t> short_remainder_;
  std::vector<uint8_t> codes_;
  std::vector<float> scales_;
  std::unique_ptr<ThreadPool> pool_;   // for a GPU, whose kernels have no threads of the host; null: there are none
};

}  // namespace stw
