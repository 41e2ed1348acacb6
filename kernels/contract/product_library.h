// Matrix products by a library of the device's vendor: what the kernels ask of it. src/ finds the library (src/cuda/matmul.h).
#pragma once
#include "kernels/contract/kernels.h"

namespace stw::kernels {

// c (m, n) = (start, or 0) + a (m, k) · b (k, n) + bias (n), summed up in fp32 and rounded once, to the type of c. All matrices are
// row-major; strides count elements from one row to the next, and pointers and rows lie at multiples of 16 bytes.
struct LibraryProduct {
  int64_t m, n, k;
  DType factors, sum;      // of a and b; of c, start and bias
  const void *a, *b;
  bool a_turned, b_turned; // what is stored is (k, m), (n, k)
  int64_t a_stride, b_stride, c_stride;
  void* c;
  const void* start;       // strides of c; may be c; null: 0
  const void* bias;        // null: none
  // An extent that the order of additions may not depend on: all products that differ in it alone are summed up alike.
  enum class Free : uint8_t { none, m } free;
};

// `takes` says whether it has an algorithm for products of this kind, the same for any extent that is free; `multiply` is asked for
// those alone. Errors stay with the library until its owner asks.
struct ProductLibrary {
  void* self;
  bool (*takes)(void* self, const LibraryProduct& product);
  void (*multiply)(void* self, const LibraryProduct& product, void* stream);
};

}  // namespace stw::kernels
