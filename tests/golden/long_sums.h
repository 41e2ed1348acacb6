// How far PyTorch's fp32 sums over many terms are from the exact ones. Written by long_sums.py, which says
// how; not edited.
#pragma once
#include <cstdint>

namespace stw::kernels::test {

struct PyTorchError {
  int64_t terms;
  double error;
};
inline constexpr PyTorchError of_weight_gradient[] = {{16384, 3.90e-07}, {131072, 6.36e-07}};
inline constexpr PyTorchError of_bias_gradient[] = {{16384, 1.51e-07}, {131072, 2.04e-07}};
inline constexpr PyTorchError of_norm_gradient[] = {{16384, 3.92e-06}, {131072, 9.48e-06}};
inline constexpr PyTorchError of_embedding_gradient[] = {{16384, 1.35e-06}, {131072, 4.07e-06}};
inline constexpr PyTorchError of_head_gradient[] = {{50257, 6.92e-07}, {151936, 9.34e-07}};
inline constexpr PyTorchError of_loss[] = {{50257, 6.58e-08}, {151936, 6.31e-08}};
inline constexpr PyTorchError of_loss_gradient[] = {{50257, 2.85e-08}, {151936, 2.81e-08}};

}  // namespace stw::kernels::test
