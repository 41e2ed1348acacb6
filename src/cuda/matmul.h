// Matrix products by cuBLASLt, as the kernels ask for them (kernels/contract/product_library.h).
//
// One algorithm for each kind of product: types, extents but for the free one, epilogue. It is chosen for a usual number of rows
// and kept, so that the rows of a micro-batch change no bit (contract E3). Algorithms that split the sum of an element over blocks
// are left out: they need scratch memory, which they do not get, and their sums would depend on the number of rows. Where cuBLASLt has
// no such algorithm for a kind of product, our own kernels compute all of that kind.
//
// It chooses while no stream is recorded: cuBLASLt 13.3 has no answer then. So products that are asked for in a recording and are of a
// new kind wait for their choice, and whoever records begins again.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/contract/product_library.h"
#include "src/cuda/cublaslt.h"

namespace stw::cuda {

class Matmul {
 public:
  // On the current device. Errors: unsupported where there is no cuBLASLt, else what that says.
  // `path`: cublaslt::load's.
  static Result<std::unique_ptr<Matmul>> create(const std::string& path);
  ~Matmul();
  Matmul(const Matmul&) = delete;

  const kernels::ProductLibrary* library() const { return &library_; }
  // What went wrong since the last call.
  stw::Status take_error();
  // Kinds of products that turned out since the last call to have no algorithm, for people.
  std::vector<std::string> take_declined() { return std::exchange(declined_, {}); }
  // While a stream is recorded choices wait: of new kinds it takes every product and multiplies none.
  void defer(bool is_recording) { defers_ = is_recording; }
  // Makes the choices that wait. True: there were some, and a recording since then is of no use.
  bool choose_waiting();

 private:
  explicit Matmul(const cublaslt::Functions& functions);
  struct Descriptors;
  bool must_wait(const kernels::LibraryProduct& product);
  // Null where there is none, and where cuBLASLt failed to say, which is an error and asked again.
  const cublaslt::Algorithm* algorithm_for(const kernels::LibraryProduct& product);
  // Nothing where cuBLASLt says that it has none. Errors: it failed, which says nothing of what it has.
  cublaslt::Status choose(const kernels::LibraryProduct& product, std::optional<cublaslt::Algorithm>& chosen) const;
  // not_supported where it needs scratch memory, or does not compute the product.
  cublaslt::Status check(const cublaslt::Algorithm& algorithm, const kernels::LibraryProduct& product) const;
  void note(cublaslt::Status status, const char* what, const kernels::LibraryProduct& product);
  cublaslt::Status multiply(const kernels::LibraryProduct& product, cudaStream_t stream);

  const cublaslt::Functions lt_;
  cublaslt::Handle handle_ = nullptr;
  cublaslt::Status failed_ = cublaslt::success;
  std::string failed_product_;
  std::vector<std::string> declined_;
  std::map<uint64_t, std::optional<cublaslt::Algorithm>> algorithms_;   // by the XXH3 of what they depend on
  bool defers_ = false;
  std::vector<kernels::LibraryProduct> waiting_;
  kernels::ProductLibrary library_;
};

}  // namespace stw::cuda
