// dW += dyᵀ·x: chains of chain_terms rows of a sample are added in order to the buffer, so a cut of the batch
// between samples or between chains changes no bit. All trained parts are in one launch. A bf16 gradient
// stays in registers as fp32 from the first sample to the last and is rounded there after each sample.
// Further ops run in the same launch as the first one: the last tiles of one matrix leave multiprocessors
// idle, and the tiles of the next one use these.
//
// The vendor's library adds its sum to the buffer at the end. In exact mode, it does so sample by sample,
// which reads and writes the buffer for every sample. For a sample of T rows, this moves 8 bytes an element,
// and the product takes T multiply-adds an element: at T = 1024 both take about as long. Otherwise, it does
// so once for all rows.
#include "kernels/cuda/product/linear_products.h"
#include "kernels/cuda/product/matrix_product.h"

namespace stw::kernels::cuda {

// The same products over `count` rows from `row` on. If row > 0, they add to the buffer.
static Products rows_of(Products all, int64_t row, int64_t count) {
  for (int i = 0; i < all.count; ++i) {
    Product& p = all.product[i];
    p.k = p.k - row < count ? p.k - row : count;
    p.a = element_at(p.a, all.a, row * p.a_stride);
    p.b = element_at(p.b, all.b, row * p.b_stride);
    if (row > 0) p.start = p.c;
  }
  return all;
}

// Computes the products by the library, `step` rows at a time. Returns false if the library does not take
// them. The first step may start from +0, which is another kind of product: either the library computes both
// kinds, or our kernels compute everything.
static bool by_library(const Launch& l, const Products& all, int64_t step) {
  constexpr auto free = LibraryProduct::Free::none;
  Products from_nothing = rows_of(all, 0, step), further = from_nothing;
  for (int i = 0; i < all.count; ++i)
    from_nothing.product[i].start = nullptr, further.product[i].start = further.product[i].c;
  for (const Products* kind : {&from_nothing, &further})
    if (!library_takes<Contiguous::output, Contiguous::output>(l, *kind, free)) return false;
  for (int64_t row = 0; all.count > 0 && row < all.product[0].k; row += step)
    library_multiply<Contiguous::output, Contiguous::output>(l, rows_of(all, row, step), free);
  return true;
}

// Appends products to others if one launch can compute both: of the same kind, by the same kernels.
static bool join(Products& all, const Products& more) {
  if (all.count + more.count > max_parts || all.a != more.a || all.b != more.b || all.c != more.c ||
      all.restart != more.restart || all.state != more.state || all.first != more.first)
    return false;
  constexpr auto fits = fits_tensor_cores<Contiguous::output, Contiguous::output>;
  Products both = all;
  both.padded_a = all.padded_a && more.padded_a;
  for (int i = 0; i < more.count; ++i) both.product[both.count++] = more.product[i];
  if (fits(both) != fits(all) || fits(both) != fits(more)) return false;
  all = both;
  return true;
}

void linear_weight_gradient(const Launch& l, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear_weight_gradient);
  Products all = weight_gradient_products(args);
  const LinearArgs* next = args.further;
  const bool by_library_alone = may_use_library(args.products) && args.gradient_dtype == DType::f32;
  while (next != nullptr && !by_library_alone && next->products == args.products &&
         join(all, weight_gradient_products(*next)))
    next = next->further;
  if (next != nullptr) linear_weight_gradient(l, *next);
  if (by_library_alone && by_library(l, all, args.exact ? args.rows_per_sample : args.rows)) return;
  if (args.gradient_dtype == DType::f32)
    built_in_product<Contiguous::output, Contiguous::output>(l, all, args.products);
  else built_in_product<Contiguous::output, Contiguous::output, true>(l, all, args.products);
}

}  // namespace stw::kernels::cuda
