// db += Σ_rows dy, in tiles of token_tile rows that restart in every sample. The tiles are added in order,
// group after group, to the buffer (token_tiles.h). The lower bound is the time to read dy once. The sums are
// written and read too, 1/32 of that. All biases of a call, of parts and of further ops, take two launches.
//
// Workspace: for each bias the sums of its tiles (tiles, features), one bias after the other.
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/product/bias_sums.h"

namespace stw::kernels::cuda {

void linear_bias_gradient(const Launch& l, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear_bias_gradient);
  const TokenTiles tiles{args.rows, args.rows_per_sample};
  Biases all = {0, args.y.dtype, tiles, 0, {}};
  Folds folds = {args.accumulate, tiles, 0, {}};
  float* sums = static_cast<float*>(l.workspace);
  const auto run = [&] {
    launch_bias_tiles(l, all);
    launch_folds(l, folds);
    all.count = folds.count = 0, all.tasks = 0;
  };
  for (const LinearArgs* one = &args; one != nullptr; one = one->further) {
    assert(one->accumulate == args.accumulate && (one->tile_sums == nullptr || one->parts == 1));
    for_parts(*one, [&](const LinearPart& p, int64_t column) {
      if (p.bias_gradient == nullptr) return;
      folds.add(one->tile_sums != nullptr ? one->tile_sums : sums, p.features, p.bias_gradient);
      if (one->tile_sums == nullptr) {
        all.add(*one, column, p.features, sums);
        sums += tiles.count() * p.features;
      }
      if (folds.count == most_biases) run();
    });
  }
  STW_ASSERT_FITS(sums);
  run();
}

}  // namespace stw::kernels::cuda
