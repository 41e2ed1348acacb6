#include <assert.h>

#include "kernels/contract/kernels.h"

namespace stw::kernels {

double alibi_root(int heads) {
  assert(heads > 0);
  double root = 1.0 / 16;
  for (int64_t m = 2; m <= heads; m *= 2) root = __builtin_sqrt(root);
  return root;
}

}  // namespace stw::kernels
