// The parts of gpu_probe. Each makes its own data, so any part can be left out.
#pragma once
#include "tests/gpu/probe/card.h"

namespace stw::probe {

void measure_copy(Report& report, const Options& options, Peaks& peaks);  // the card's own copy
void measure_peak(Report& report, const Options& options, Peaks& peaks);  // its product, by cuBLASLt
// bits and values of every tile and layout of products, forced in turn
void check_tiles(Report& report, const Options& options, Peaks& peaks);
// speed of every tile for GPT-2's products, and the tile that is chosen
void measure_costs(Report& report, const Options& options, Peaks& peaks);
// GPT-2's products with the default tiles
void measure_products(Report& report, const Options& options, Peaks& peaks);
// GPT-2's products by cuBLASLt, and attention by cuDNN
void measure_libraries(Report& report, const Options& options, Peaks& peaks);
// developer switches, one after the other
void check_variants(Report& report, const Options& options, Peaks& peaks);
void check_chain(Report& report, const Options& options,
                 Peaks& peaks);  // a weight gradient of half a million tokens
void check_attention(Report& report, const Options& options, Peaks& peaks);
void measure_cudnn_attention(Report& report, const Options& options, Peaks& peaks);
void check_branch(Report& report, const Options& options,
                  Peaks& peaks);  // whole steps, with weight gradients on a branch
void check_losses(Report& report, const Options& options, Peaks& peaks);   // cross-entropy
void check_updates(Report& report, const Options& options, Peaks& peaks);  // AdamW
void check_norms(Report& report, const Options& options, Peaks& peaks);
// Six kernels at GPT-2's sizes, each launched once and nothing else, for a profiler that inspects every
// launch.
void run_once(Report& report, const Options& options, Peaks& peaks);

}  // namespace stw::probe
