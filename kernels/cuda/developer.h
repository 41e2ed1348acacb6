// Switches of developers: what tests and tests/gpu's probe vary to compare kernels that compute the same. No user reaches them:
// neither the C API nor the environment sets one. A program writes them between two launches, from the thread that launches.
//
// How to go through all tiles of a product (tests/kernels/product/product_tiles.h does it):
//   developer_switches().tile = i;      // 0 … product_tile_count - 1; product_tile_names[i] is its name
//   developer_switches().refused = 0;
//   linear(launch, args);
//   developer_switches().refused > 0    // this kind of product has no such tile: nothing ran, the output is as it was
#pragma once

namespace stw::kernels::cuda {

// Rows × columns of the output that a block computes; by wgmma, or by mma.sync.
enum ProductTile : int {
  wgmma_128x256, wgmma_128x192, wgmma_128x128, wgmma_64x128,
  mma_128x128, mma_96x192, mma_64x64,
  product_tile_count
};
inline constexpr const char* product_tile_names[] = {
  "wgmma 128x256", "wgmma 128x192", "wgmma 128x128", "wgmma 64x128",
  "mma 128x128", "mma 96x192", "mma 64x64",
};
static_assert(sizeof product_tile_names / sizeof *product_tile_names == product_tile_count);

struct DeveloperSwitches {
  int tile = -1;     // the ProductTile of all products on tensor cores; -1: that which is estimated to end first
  int refused = 0;   // counts launches that the forced tile could not take
  // Products by wgmma: without the fence by which copies are shown to them, once a slice. Only a card can say whether they see them all
  // the same; the emulated one ends the program.
  bool fence = true;
  // Slices in shared memory at once, of gradients of weights in fp32 by wgmma: 3 or 6 of 128 × 128 (3 in bf16 alone), 4 or 6 of 64 × 128.
  // 3 asks for the fewer, 6 for the more; 0: 6, but 4 of 64 × 128 where two tiles share a multiprocessor.
  int stages = 0;
  bool weight_gradient_branch = false;   // programs that are recorded from now on compute weight gradients beside other ops (src/cuda/branch.h)
};
DeveloperSwitches& developer_switches();

}  // namespace stw::kernels::cuda
