// The products of the linear kernels, for each way to compute them.
#pragma once
#include "kernels/cuda/product/product.h"

namespace stw::kernels::cuda {

inline int64_t sum_of_features(const LinearArgs& args) {
  int64_t sum = 0;
  for (int i = 0; i < args.parts; ++i) sum += args.part[i].features;
  return sum;
}
inline void* element_at(const void* data, DType t, int64_t at) {
  return static_cast<char*>(const_cast<void*>(data)) + at * (t == DType::f32 ? 4 : 2);
}
// Calls body(part, first column of the part) for every part.
template <class Body>
void for_parts(const LinearArgs& args, const Body& body) {
  int64_t column = 0;
  for (int i = 0; i < args.parts; column += args.part[i++].features) body(args.part[i], column);
}

// y_i (rows, features) = x · Wᵀ; with one part, plus the residual.
inline Products forward_products(const LinearArgs& args) {
  Products all = {
      args.x.dtype, args.weight_dtype, args.y.dtype, DType::f32, args.weight_dtype, false, 0, 0, {}};
  for_parts(args, [&](const LinearPart& p, int64_t column) {
    all.product[all.count++] = {
        args.rows,
        p.features,
        args.inputs,
        args.x.data,
        p.weight,
        args.inputs,
        args.transposed ? p.features : args.inputs,
        args.y_stride,
        args.y.data == nullptr ? nullptr : element_at(args.y.data, args.y.dtype, column),
        nullptr,
        p.bias,
        0,
        args.residual.data,
        args.activated.data};
  });
  return all;
}
// Whether zeros follow the columns of a dy that is the first factor. This needs a dy of one part.
inline bool has_padding(const LinearArgs& args) {
  return args.parts == 1 && args.y_stride >= (sum_of_features(args) + 7) / 8 * 8;
}

// dx (rows, inputs) = addend + Σ dy_i · W_i
inline Products input_gradient_products(const LinearArgs& args) {
  Products all = {
      args.y.dtype, args.weight_dtype, args.x.dtype, args.addend.dtype, DType::f32, true, 0, 0, {}};
  for_parts(args, [&](const LinearPart& p, int64_t column) {
    all.product[all.count++] = {args.rows,
                                args.inputs,
                                p.features,
                                element_at(args.y.data, args.y.dtype, column),
                                p.weight,
                                args.y_stride,
                                args.transposed ? p.features : args.inputs,
                                args.x_stride > 0 ? args.x_stride : args.inputs,
                                args.x.data,
                                args.addend.data,
                                nullptr,
                                0,
                                nullptr,
                                nullptr,
                                args.before_gelu.data};
  });
  all.padded_a = has_padding(args);
  return all;
}
// Products::restart of a gradient. In samples of whole chains, chains restart by themselves.
inline int64_t chains_restart(int64_t rows_per_sample) {
  return rows_per_sample % chain_terms != 0 ? rows_per_sample : 0;
}
// dW_i (features, inputs) += dy_iᵀ · x, or (inputs, features) += xᵀ · dy_i; in bf16 rounded at the end of
// every sample.
inline Products weight_gradient_products(const LinearArgs& args) {
  const DType first = args.transposed ? args.x.dtype : args.y.dtype,
              second = args.transposed ? args.y.dtype : args.x.dtype;
  const bool rounded = args.gradient_dtype != DType::f32;
  Products all = {first,
                  second,
                  args.gradient_dtype,
                  args.gradient_dtype,
                  DType::f32,
                  false,
                  0,
                  rounded ? args.rows_per_sample : chains_restart(args.rows_per_sample),
                  {},
                  args.state};
  for_parts(args, [&](const LinearPart& p, int64_t column) {
    if (p.weight_gradient == nullptr) return;
    const void* dy = element_at(args.y.data, args.y.dtype, column);
    const void* start = args.accumulate ? p.weight_gradient : nullptr;
    all.product[all.count++] =
        args.transposed
            ? Product{args.inputs,   p.features, args.rows,         args.x.data, dy,      args.inputs,
                      args.y_stride, p.features, p.weight_gradient, start,       nullptr, p.stream}
            : Product{p.features,  args.inputs, args.rows,         dy,    args.x.data, args.y_stride,
                      args.inputs, args.inputs, p.weight_gradient, start, nullptr,     p.stream};
  });
  all.first = args.first_row;
  all.padded_a = !args.transposed && has_padding(args);
  return all;
}

}  // namespace stw::kernels::cuda
