// The interface between the kernels and a vendor's library of matrix products. src/cuda/matmul.h finds and
// calls the library.
#pragma once
#include "kernels/contract/kernels.h"

namespace stw::kernels {

// c (m, n) = start (or 0) + a (m, k) · b (k, n) + bias (n), summed in fp32 and rounded once to the type of c.
// All matrices are row-major. Strides count elements from one row to the next. Pointers and rows are aligned
// to 16 bytes.
struct LibraryProduct {
  int64_t m, n, k;
  DType factors, sum;  // Types of a and b; of c, start and bias.
  const void *a, *b;
  bool a_transposed, b_transposed;  // Stored transposed, as (k, m) or (n, k).
  int64_t a_stride, b_stride, c_stride;
  void* c;
  const void* start;  // c's stride; may be c. Null: 0.
  const void* bias;   // Null: none.
  // An extent that must not affect the order of additions: all products that differ only in this extent are
  // summed alike.
  enum class Free : uint8_t { none, m } free;
};

// `takes`: whether the library has an algorithm for this product; the answer does not depend on the free
// extent. `multiply` is called only for such products. The library keeps its errors until its owner asks for
// them.
struct ProductLibrary {
  void* self;
  bool (*takes)(void* self, const LibraryProduct& product);
  void (*multiply)(void* self, const LibraryProduct& product, void* stream);
};

}  // namespace stw::kernels
