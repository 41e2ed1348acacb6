// y = x·Wᵀ + b for up to max_parts weights side by side. Chains over the inputs in fp32 (gemm.h), then the
// bias, then one rounding (bf16, f16), then the residual. No bit depends on the number of rows, so a
// generated token gets the same numbers as in training.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/product/linear_tiles.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

void linear(const Launch& launch, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear);
  assert(args.residual.data == nullptr || (args.parts == 1 && args.residual.dtype == args.y.dtype));
  if (args.activated.data != nullptr) {
    LinearArgs product = args;
    product.activated = {};
    if (args.y.data == nullptr) product.y.data = args.activated.data;
    linear(launch, product);
    return gelu(launch, {args.rows * args.y_stride,
                         Activation::gelu_tanh,
                         {product.y.data, args.y.dtype},
                         {},
                         args.activated,
                         true});
  }
  const int64_t inputs = args.inputs, y_stride = args.y_stride;
  const TileGrid grid = linear_grid(args, launch.parallel != nullptr ? launch.parallel->threads : 1);
  STW_ASSERT_THREADS_FIT(grid.thread_bytes);
  int64_t first_column[max_parts] = {0};
  for (int i = 1; i < args.parts; ++i) first_column[i] = first_column[i - 1] + args.part[i - 1].features;

  for_part_tiles(
      launch, grid, args.rows, feature_columns(args),
      [&](int part, int64_t row, int64_t rows, int64_t feature, int64_t features, int thread) {
        const LinearPart& p = args.part[part];
        const int64_t x_bytes = element_bytes(args.x.dtype), w_bytes = element_bytes(args.weight_dtype);
        const View x = {(const char*)args.x.data + row * inputs * x_bytes, inputs, 1, args.x.dtype};
        const int64_t w_at = args.transposed ? feature : feature * inputs;
        const View w = {(const char*)p.weight + w_at * w_bytes, args.transposed ? p.features : 1,
                        args.transposed ? 1 : inputs, args.weight_dtype};
        const void* bias = p.bias != nullptr ? (const char*)p.bias + feature * w_bytes : nullptr;
        char* const workspace = (char*)launch.workspace + thread * grid.thread_bytes;
        const int64_t y_at = row * y_stride + first_column[part] + feature;
        if (args.y.dtype == DType::f32) {
          chain_product(rows, features, inputs, x, w, (float*)args.y.data + y_at, y_stride, false, workspace,
                        bias, args.weight_dtype);
        } else {
          float* const tile = (float*)(workspace + grid.product_bytes);
          chain_product(rows, features, inputs, x, w, tile, grid.tile_columns, false, workspace, bias,
                        args.weight_dtype);
          for (int64_t i = 0; i < rows; ++i)
            store_tile_row(args.y.data, args.y.dtype, y_at + i * y_stride, tile + i * grid.tile_columns,
                           features);
        }
        if (args.residual.data == nullptr) return;
        for (int64_t i = 0; i < rows; ++i)  // While the tile is in the caches.
          for_groups(0, features, [&](int64_t j, int64_t n) {
            const int64_t at = y_at + i * y_stride + j;
            const F16 before = load_group(args.residual.data, args.residual.dtype, at, n);
            store_group(args.y.data, args.y.dtype, at,
                        add(before, load_group(args.y.data, args.y.dtype, at, n)), n);
          });
      });
}

}  // namespace stw::kernels::STW_ISA
