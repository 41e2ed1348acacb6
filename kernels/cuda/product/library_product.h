// Products by the vendor's library (product_library.h). All of this runs on the host.
#pragma once
#include "kernels/contract/product_library.h"
#include "kernels/cuda/product/product.h"

namespace stw::kernels::cuda {

inline bool in_sixteens(const void* p, DType dtype, int64_t stride) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0 && stride * (dtype == DType::f32 ? 4 : 2) % 16 == 0;
}

// Depends on types, strides and columns alone: the arena's tensors are aligned to 64 bytes. Strides must be
// multiples of 16 bytes. Extents need not be, but the library's kernels for other extents are slower on some
// cards.
inline bool fits_library(const Products& all) {
  if (all.a != all.b || (all.c != all.a && all.c != DType::f32)) return false;
  for (int i = 0; i < all.count; ++i) {
    const Product& p = all.product[i];
    if (!in_sixteens(p.a, all.a, p.a_stride) || !in_sixteens(p.b, all.b, p.b_stride) ||
        !in_sixteens(p.c, all.c, p.c_stride))
      return false;
    if (p.start != nullptr && (all.start != all.c || !in_sixteens(p.start, all.start, p.c_stride)))
      return false;
    if (p.residual != nullptr && (p.start != nullptr || !in_sixteens(p.residual, all.c, p.c_stride)))
      return false;
    if (p.bias != nullptr && (all.bias != all.c || !in_sixteens(p.bias, all.bias, 0))) return false;
  }
  return true;
}

// One call for each product. In a chained product, each call starts from the result of the one before,
// rounded to c's type.
template <Contiguous a_along, Contiguous b_along>
LibraryProduct library_product(const Products& all, int i, LibraryProduct::Free free) {
  const Product& p = all.product[i];
  const void* const start = all.chained && i > 0 ? p.c : p.residual != nullptr ? p.residual : p.start;
  return {p.m,
          p.n,
          p.k,
          all.a,
          all.c,
          p.a,
          p.b,
          a_along == Contiguous::output,
          b_along == Contiguous::depth,
          p.a_stride,
          p.b_stride,
          p.c_stride,
          p.c,
          start,
          p.bias,
          free};
}
template <Contiguous a_along, Contiguous b_along>
bool library_takes(const Launch& l, const Products& all, LibraryProduct::Free free) {
  if (!fits_library(all)) return false;
  for (int i = 0; i < all.count; ++i)
    if (!l.products->takes(l.products->self, library_product<a_along, b_along>(all, i, free))) return false;
  return true;
}
template <Contiguous a_along, Contiguous b_along>
void library_multiply(const Launch& l, const Products& all, LibraryProduct::Free free) {
  for (int i = 0; i < all.count; ++i)
    l.products->multiply(l.products->self, library_product<a_along, b_along>(all, i, free), l.stream);
}

}  // namespace stw::kernels::cuda
