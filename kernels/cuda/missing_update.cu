// To be replaced, kernel by kernel.
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

void adamw(const Launch&, const UpdateArgs&) { __builtin_trap(); }
void adamw8(const Launch&, const UpdateArgs&) { __builtin_trap(); }
void sgd(const Launch&, const UpdateArgs&) { __builtin_trap(); }
void lion(const Launch&, const UpdateArgs&) { __builtin_trap(); }
void lion8(const Launch&, const UpdateArgs&) { __builtin_trap(); }
void muon(const Launch&, const UpdateArgs&) { __builtin_trap(); }
void adafactor(const Launch&, const UpdateArgs&) { __builtin_trap(); }

}  // namespace stw::kernels::cuda
