// Switches for developers. Tests and the probe of tests/gpu use them to compare kernels that compute the
// same. Users cannot reach them: neither the C API nor the environment sets one. A program sets them between
// two launches, on the thread that launches.
//
// How to try all tiles of a product (tests/kernels/product/product_tiles.h does it):
//   developer_switches().tile = i;      // 0 … product_tile_count - 1; product_tile_names[i] is its name
//   developer_switches().refused = 0;
//   linear(launch, args);
//   developer_switches().refused > 0    // this kind of product has no such tile, and nothing ran
#pragma once

#include <cstdint>

namespace stw::kernels::cuda {

// Rows × columns of the output of a block; by wgmma, or by mma.sync.
enum ProductTile : int {
  wgmma_128x256,
  wgmma_128x192,
  wgmma_128x128,
  wgmma_64x128,
  mma_128x128,
  mma_96x192,
  mma_64x64,
  product_tile_count
};
inline constexpr const char* product_tile_names[] = {
    "wgmma 128x256", "wgmma 128x192", "wgmma 128x128", "wgmma 64x128",
    "mma 128x128",   "mma 96x192",    "mma 64x64",
};
static_assert(sizeof product_tile_names / sizeof *product_tile_names == product_tile_count);

struct DeveloperSwitches {
  int tile = -1;    // ProductTile of all tensor-core products; -1: the one with the shortest estimated time.
  int refused = 0;  // Counts launches that the forced tile does not support.
  int chosen = -1;  // ProductTile of the last product that was launched. The launch sets it.
  // False: products by wgmma omit the fence, one for each slice, that makes copies visible to them. Only a
  // real GPU can show whether the products see all copies without the fence. The emulated GPU ends the
  // program when a product reads copies without it.
  bool fence = true;
  // Number of slices that are in shared memory at once, for fp32 weight gradients by wgmma: 4 or 6, for tiles
  // of 128 × 128 (4 with bf16 operands only) and of 64 × 128. 0: it is 6, but 4 for 64 × 128 if two tiles
  // share a multiprocessor.
  int stages = 0;
  // Terms of k that weight gradients add up before their sum is added to the total; a multiple of 256. 0:
  // 256. With a whole product's k, only the last addition is left. The difference in time is the price of
  // totals. The bits change.
  int64_t chain = 0;
  // Programs recorded from now on compute weight gradients in parallel with other ops (src/cuda/branch.h).
  bool weight_gradient_branch = false;
};
DeveloperSwitches& developer_switches();

}  // namespace stw::kernels::cuda
