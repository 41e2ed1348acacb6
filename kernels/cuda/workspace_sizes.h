// Sizes that several workspace formulas share. Compiled by the host's compiler.
#pragma once
#include "kernels/contract/kernels.h"

namespace stw::kernels::cuda {

inline uint64_t up(uint64_t bytes, uint64_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

// Number of tiles of token_tile rows; tiles restart in every sample (token_tiles.h).
inline uint64_t token_tiles(int64_t rows, int64_t rows_per_sample) {
  const auto tiles = [](int64_t n) { return (n + token_tile - 1) / token_tile; };
  return static_cast<uint64_t>(rows / rows_per_sample * tiles(rows_per_sample) + tiles(rows % rows_per_sample));
}

}  // namespace stw::kernels::cuda
