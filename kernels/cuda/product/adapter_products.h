// The products of the adapter kernels.
#pragma once
#include "kernels/cuda/product/linear_products.h"

namespace stw::kernels::cuda {

// Neither the vendor's library nor warpgroups compute narrow products.
inline bool is_built_in_kernel(ProductKernels products) {
  return products == ProductKernels::chain || products == ProductKernels::tensor;
}

// Part i's columns of `low`.
inline void* low_of(const AdapterArgs& args, int i) {
  return element_at(args.low.data, args.low.dtype, i * args.rank);
}
inline void* columns_of(const AdapterArgs& args, const AdapterPart& p) {
  return element_at(args.y.data, args.y.dtype, p.column);
}

// y_i (rows, features) += low_i · Wᵀ
inline Products adapter_products(const AdapterArgs& args) {
  Products all = {args.low.dtype, args.weight_dtype, args.y.dtype, args.y.dtype, DType::f32, false, 0, 0, {}};
  for (int i = 0; i < args.parts; ++i) {
    const AdapterPart& p = args.part[i];
    void* const y = columns_of(args, p);
    all.product[all.count++] = {
        args.rows,  p.features, args.rank, low_of(args, i), p.weight, args.parts * args.rank, args.rank,
        args.width, y,          y,         nullptr};
  }
  return all;
}
// dlow_i (rows, rank) = dy_i · W
inline Products adapter_input_gradient_products(const AdapterArgs& args) {
  Products all = {args.y.dtype, args.weight_dtype, args.low.dtype, DType::f32, DType::f32, false, 0, 0, {}};
  for (int i = 0; i < args.parts; ++i) {
    const AdapterPart& p = args.part[i];
    all.product[all.count++] = {args.rows,       args.rank,  p.features, columns_of(args, p),
                                p.weight,        args.width, args.rank,  args.parts * args.rank,
                                low_of(args, i), nullptr,    nullptr};
  }
  return all;
}
// dW_i (features, rank) += dy_iᵀ · low_i
inline Products adapter_weight_gradient_products(const AdapterArgs& args) {
  Products all = {args.y.dtype,
                  args.low.dtype,
                  DType::f32,
                  DType::f32,
                  DType::f32,
                  false,
                  0,
                  chains_restart(args.rows_per_sample),
                  {}};
  for (int i = 0; i < args.parts; ++i) {
    const AdapterPart& p = args.part[i];
    if (p.weight_gradient == nullptr) continue;
    all.product[all.count++] = {p.features,
                                args.rank,
                                args.rows,
                                columns_of(args, p),
                                low_of(args, i),
                                args.width,
                                args.parts * args.rank,
                                args.rank,
                                p.weight_gradient,
                                args.accumulate ? p.weight_gradient : nullptr,
                                nullptr};
  }
  all.first = args.first_row;
  return all;
}

}  // namespace stw::kernels::cuda
