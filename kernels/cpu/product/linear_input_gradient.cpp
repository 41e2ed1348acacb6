// dx = addend + Σ_parts dy·W: chains over the features, which restart with every part, are added in order to
// the addend in fp32. A 16-bit dx is rounded once, at the end.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/product/linear_tiles.h"

namespace stw::kernels::STW_ISA {

// Sums of dx's columns: (tiles, inputs), each from +0 in the order of the rows.
static void sum_input_tiles(const Launch& launch, const LinearArgs& args) {
  const int64_t tiles_of_sample = ceil_div(args.rows_per_sample, token_tile),
                rest = args.rows % args.rows_per_sample;
  parallel_for(launch, args.rows / args.rows_per_sample * tiles_of_sample + ceil_div(rest, token_tile),
               [&](int64_t tile, int) {
                 const int64_t sample = tile / tiles_of_sample * args.rows_per_sample,
                               first = sample + tile % tiles_of_sample * token_tile;
                 const int64_t end = min(args.rows, min(first + token_tile, sample + args.rows_per_sample));
                 for (int64_t column = 0; column < args.inputs; column += 16) {
                   const int64_t n = min(16, args.inputs - column);
                   F16 sum = zero();
                   for (int64_t row = first; row < end; ++row)
                     sum = add(sum, load16_some(args.x.data, args.x.dtype, row * args.inputs + column, n));
                   store_some(args.input_bias_sums + tile * args.inputs + column, sum, n);
                 }
               });
}

void linear_input_gradient(const Launch& launch, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear_input_gradient);
  if (args.before_gelu.data != nullptr) {
    assert(args.before_gelu.data != args.x.data);
    LinearArgs product = args;
    product.before_gelu = {};
    linear_input_gradient(launch, product);
    gelu_gradient(launch, {args.rows * args.inputs,
                           Activation::gelu_tanh,
                           args.before_gelu,
                           {args.x.data, args.x.dtype},
                           args.x,
                           true});
    if (args.input_bias_gradient != nullptr) linear_bias_gradient(launch, input_bias_args(args));
    if (args.input_bias_sums != nullptr) sum_input_tiles(launch, args);
    return;
  }
  const int64_t inputs = args.inputs, y_stride = args.y_stride,
                x_stride = args.x_stride > 0 ? args.x_stride : inputs;
  const TileGrid grid = input_gradient_grid(args, launch.parallel != nullptr ? launch.parallel->threads : 1);
  STW_ASSERT_THREADS_FIT(grid.thread_bytes);
  const bool direct = args.x.dtype == DType::f32;

  parallel_for(launch, grid.row_tiles * grid.column_tiles, [&](int64_t index, int thread) {
    const int64_t row = index % grid.row_tiles * grid.tile_rows,
                  input = index / grid.row_tiles * grid.tile_columns;
    const int64_t rows = min(grid.tile_rows, args.rows - row),
                  columns = min(grid.tile_columns, inputs - input);
    const int64_t at = row * x_stride + input;
    char* const workspace = (char*)launch.workspace + thread * grid.thread_bytes;
    float* const tile = direct ? (float*)args.x.data + at : (float*)(workspace + grid.product_bytes);
    const int64_t stride = direct ? x_stride : grid.tile_columns;

    const bool added = args.addend.data != nullptr, in_place = direct && args.addend.data == args.x.data;
    if (added && !in_place)
      for (int64_t i = 0; i < rows; ++i)
        load_tile_row(tile + i * stride, args.addend.data, args.addend.dtype, at + i * x_stride, columns);

    const int64_t y_bytes = element_bytes(args.y.dtype), w_bytes = element_bytes(args.weight_dtype);
    int64_t column = 0;
    for (int i = 0; i < args.parts; ++i) {
      const LinearPart& p = args.part[i];
      const View dy = {(const char*)args.y.data + (row * y_stride + column) * y_bytes, y_stride, 1,
                       args.y.dtype, leaves_out_zeros(args.y.dtype)};
      const int64_t w_at = args.transposed ? input * p.features : input;
      const View w = {(const char*)p.weight + w_at * w_bytes, args.transposed ? 1 : inputs,
                      args.transposed ? p.features : 1, args.weight_dtype};
      chain_product(rows, columns, p.features, dy, w, tile, stride, added || i > 0, workspace);
      column += p.features;
    }
    if (!direct)
      for (int64_t i = 0; i < rows; ++i)
        store_tile_row(args.x.data, args.x.dtype, at + i * x_stride, tile + i * stride, columns);
  });
}

}  // namespace stw::kernels::STW_ISA
