// How adafactor cuts a parameter into lines and blocks. This is part of the definition of its sums. The
// workspace holds one float for each line, then one row of floats for each block.
#pragma once
#include "kernels/contract/kernels.h"

namespace stw::kernels {

struct AdafactorLayout {
  int64_t width, lines;  // A line is a row of a matrix. The last line of a vector may be shorter.
  int64_t blocks;        // 0 for a vector.
  int64_t bytes;
};

static inline AdafactorLayout adafactor_layout(const UpdateArgs& args) {
  const int64_t width = args.columns > 0 ? args.columns : adafactor_line;
  const int64_t lines = (args.count + width - 1) / width;
  const int64_t blocks = args.columns > 0 ? (lines + adafactor_block - 1) / adafactor_block : 0;
  return {width, lines, blocks, (lines + blocks * width) * (int64_t)sizeof(float)};
}

}  // namespace stw::kernels
