// A cuBLASLt over the emulated machine, with the functions of src/cuda/cublaslt.h. It computes results that
// the real one may give. An element is summed in slices of its depth, whose length depends on the algorithm.
// The best algorithm depends on all extents, and, if scratch memory or sums over blocks are allowed, on the
// number of columns at the time of the call too. So a caller that lets the rows of a micro-batch choose the
// algorithm sees other bits.
#include "src/cuda/cublaslt.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/simt/runtime.h"
#include "tests/simt/simt.h"

namespace stw::cuda::cublaslt {

namespace {

constexpr Status invalid_value = 7, execution_failed = 13, internal_error = 14;

struct Product {
  int32_t transpose_a = not_transposed, transpose_b = not_transposed;
  uint32_t epilogue = 1;
  const void* bias = nullptr;
  int32_t bias_type = -1;
};
struct Layout {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t stride;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t schemes = 7, alignment[4] = {256, 256, 256, 256};
};

// The contents of the eight words of our algorithms.
enum Word { slice, alignment, splits, form };
uint64_t form_of(const Product& p, const Layout& a, const Layout& d) {
  return static_cast<uint64_t>(p.transpose_a) | static_cast<uint64_t>(p.transpose_b) << 1 |
         static_cast<uint64_t>(p.epilogue) << 2 | static_cast<uint64_t>(a.type) << 16 |
         static_cast<uint64_t>(d.type) << 24;
}

float number(const void* data, cudaDataType type, int64_t at) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[at];
  return simt::half_value(static_cast<const uint16_t*>(data)[at], type == CUDA_R_16BF);
}
void put(void* data, cudaDataType type, int64_t at, float x) {
  if (type == CUDA_R_32F) static_cast<float*>(data)[at] = x;
  else static_cast<uint16_t*>(data)[at] = simt::half_bits(x, type == CUDA_R_16BF);
}

template <class T>
Status take(T& to, const void* from, size_t bytes) {
  if (bytes != sizeof to) return invalid_value;
  std::memcpy(&to, from, bytes);
  return success;
}
template <class T, class... A>
Status make(Handle* handle, A... arguments) {
  *handle = new T{arguments...};
  return success;
}
template <class T>
Status destroy(Handle handle) {
  delete static_cast<T*>(handle);
  return success;
}

Status set_product(Handle handle, int attribute, const void* value, size_t bytes) {
  auto& p = *static_cast<Product*>(handle);
  switch (attribute) {
    case transpose_a: return take(p.transpose_a, value, bytes);
    case transpose_b: return take(p.transpose_b, value, bytes);
    case epilogue: return take(p.epilogue, value, bytes);
    case bias_pointer: return take(p.bias, value, bytes);
    case bias_type: return take(p.bias_type, value, bytes);
    default: return invalid_value;
  }
}
Status set_preference(Handle handle, int attribute, const void* value, size_t bytes) {
  auto& p = *static_cast<Preference*>(handle);
  if (attribute == max_workspace) return take(p.workspace, value, bytes);
  if (attribute == reduction_schemes) return take(p.schemes, value, bytes);
  if (attribute < alignment_a || attribute > alignment_d) return invalid_value;
  return take(p.alignment[attribute - alignment_a], value, bytes);
}

// op(a) (m, k) · op(b) (k, n) = d (m, n), column-major.
bool fit(const Product& p, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  const uint64_t m = p.transpose_a ? a.columns : a.rows, k = p.transpose_a ? a.rows : a.columns;
  const uint64_t kb = p.transpose_b ? b.columns : b.rows, n = p.transpose_b ? b.rows : b.columns;
  for (const Layout* l : {&a, &b, &c, &d})
    if (l->stride < static_cast<int64_t>(l->rows)) return false;
  return k == kb && d.rows == m && d.columns == n && c.rows == m && c.columns == n && a.type == b.type &&
         c.type == d.type && (p.epilogue == 1 || (p.bias && p.bias_type == static_cast<int32_t>(d.type)));
}

Status choose(Handle, Handle product, Handle a, Handle b, Handle c, Handle d, Handle preference,
              int requested, HeuristicResult* found, int* count) {
  const auto& p = *static_cast<Product*>(product);
  const auto &la = *static_cast<Layout*>(a), &lb = *static_cast<Layout*>(b), &lc = *static_cast<Layout*>(c),
             &ld = *static_cast<Layout*>(d);
  const auto& wish = *static_cast<Preference*>(preference);
  *count = 0;
  if (simt::is_recording()) return internal_error;  // As in cuBLASLt 13.3.
  if (!fit(p, la, lb, lc, ld)) return invalid_value;
  if (simt::faults.fail_choice > 0 && --simt::faults.fail_choice == 0) return internal_error;
  if (simt::faults.declines_products) return not_supported;
  if (requested < 1) return success;
  const uint64_t depth = p.transpose_a ? la.rows : la.columns;
  *found = {};
  uint64_t coarsest = 256;
  for (uint32_t bytes : wish.alignment) coarsest = std::min<uint64_t>(coarsest, bytes);
  found->algorithm.data[slice] = 8 * (1 + (ld.rows * 31 + ld.columns * 7 + depth) % 5);
  found->algorithm.data[alignment] = coarsest;
  found->algorithm.data[splits] = wish.schemes != 0 || wish.workspace > 0 ? 2 : 1;
  found->algorithm.data[form] = form_of(p, la, ld);
  found->waves = 1;
  *count = 1;
  return success;
}

Status check(Handle, Handle product, Handle a, Handle b, Handle c, Handle d, const Algorithm* algorithm,
             HeuristicResult* result) {
  const auto& p = *static_cast<Product*>(product);
  const auto &la = *static_cast<Layout*>(a), &ld = *static_cast<Layout*>(d);
  *result = {*algorithm, 0, success, 1, {}};
  return fit(p, la, *static_cast<Layout*>(b), *static_cast<Layout*>(c), ld) &&
                 algorithm->data[form] == form_of(p, la, ld)
             ? success
             : invalid_value;
}

Status get(const Algorithm* algorithm, int attribute, void* value, size_t bytes, size_t*) {
  const auto n = static_cast<int32_t>(algorithm->data[splits]);
  if (attribute != split_k || bytes != sizeof n) return invalid_value;
  std::memcpy(value, &n, sizeof n);
  return success;
}

Status multiply(Handle, Handle product, const void* alpha, const void* a, Handle a_layout, const void* b,
                Handle b_layout, const void* beta, const void* c, Handle c_layout, void* d, Handle d_layout,
                const Algorithm* algorithm, void*, size_t, cudaStream_t stream) {
  const Product p = *static_cast<Product*>(product);
  const Layout la = *static_cast<Layout*>(a_layout), lb = *static_cast<Layout*>(b_layout),
               lc = *static_cast<Layout*>(c_layout), ld = *static_cast<Layout*>(d_layout);
  if (!fit(p, la, lb, lc, ld) || algorithm->data[form] != form_of(p, la, ld)) return invalid_value;
  for (const void* operand : {a, b, c, static_cast<const void*>(d)})
    if (reinterpret_cast<uintptr_t>(operand) % algorithm->data[alignment] != 0) return not_supported;
  if (simt::faults.fail_product > 0 && --simt::faults.fail_product == 0) return execution_failed;
  ++simt::library_products;
  float factor, kept;
  std::memcpy(&factor, alpha, sizeof factor);
  std::memcpy(&kept, beta, sizeof kept);
  const auto depth = static_cast<int64_t>(p.transpose_a ? la.rows : la.columns);
  const int64_t length = static_cast<int64_t>(algorithm->data[slice]) +
                         (algorithm->data[splits] > 1 ? static_cast<int64_t>(ld.columns % 3) : 0);
  simt::enqueue(stream, [=] {
    const auto columns = static_cast<int64_t>(ld.columns);
    std::vector<float> left(static_cast<size_t>(depth)), right(static_cast<size_t>(depth * columns)),
        sums(ld.columns), part(ld.columns);
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t j = 0; j < columns; ++j)
        right[k * columns + j] = number(b, lb.type, p.transpose_b ? j + k * lb.stride : k + j * lb.stride);
    for (int64_t i = 0; i < static_cast<int64_t>(ld.rows); ++i) {
      for (int64_t k = 0; k < depth; ++k)
        left[k] = number(a, la.type, p.transpose_a ? k + i * la.stride : i + k * la.stride);
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (int64_t first = 0; first < depth; first += length) {
        std::fill(part.begin(), part.end(), 0.0f);
        for (int64_t k = first; k < std::min(depth, first + length); ++k)
          simt::add_multiple(part.data(), left[k], right.data() + k * columns, columns);
        for (size_t j = 0; j < part.size(); ++j) sums[j] += part[j];
      }
      for (int64_t j = 0; j < columns; ++j) {
        float sum = sums[j] * factor;
        if (kept != 0) sum += kept * number(c, lc.type, i + j * lc.stride);
        if (p.epilogue == epilogue_bias) sum += number(p.bias, ld.type, i);
        put(d, ld.type, i + j * ld.stride, sum);
      }
    }
  });
  return success;
}

const Functions functions = {
    [] { return size_t{130000}; },
    [](Status status) {
      return status == execution_failed ? "CUBLAS_STATUS_EXECUTION_FAILED"
             : status == internal_error ? "CUBLAS_STATUS_INTERNAL_ERROR"
             : status == invalid_value  ? "CUBLAS_STATUS_INVALID_VALUE"
                                        : "CUBLAS_STATUS_NOT_SUPPORTED";
    },
    [](Handle* handle) { return make<int>(handle, 1); },
    destroy<int>,
    [](Handle* handle, int compute, cudaDataType scale) {
      return compute == compute_32f && scale == CUDA_R_32F ? make<Product>(handle) : not_supported;
    },
    destroy<Product>,
    set_product,
    make<Layout, cudaDataType, uint64_t, uint64_t, int64_t>,
    destroy<Layout>,
    [](Handle* handle) { return make<Preference>(handle); },
    destroy<Preference>,
    set_preference,
    choose,
    check,
    get,
    multiply,
};

}  // namespace

Result<Functions> load(const std::string&) {
  if (!simt::faults.has_cublaslt)
    return Error{Code::unsupported, "cuBLASLt: libcublasLt.so.13: cannot open shared object file"};
  return functions;
}

}  // namespace stw::cuda::cublaslt
