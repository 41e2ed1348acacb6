// Matrix products by cuBLASLt, as the kernels ask for them (kernels/product_library.h).
//
// One algorithm for each kind of product: types, extents but for the free one, epilogue. It is chosen for a usual number of rows
// and kept, so that the rows of a micro-batch change no bit (contract E3). Algorithms that split the sum of an element over blocks
// are left out: they need scratch memory, which they do not get, and their sums would depend on the number of rows. Where cuBLASLt has
// no such algorithm for a kind of product, our own kernels compute all of that kind.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kernels/product_library.h"
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

 private:
  explicit Matmul(const cublaslt::Functions& functions);
  struct Descriptors;
  // Null where there is none.
  const cublaslt::Algorithm* algorithm_for(const kernels::LibraryProduct& product);
  std::optional<cublaslt::Algorithm> choose(const kernels::LibraryProduct& product) const;
  // Whether an algorithm computes a product, without scratch memory and without splitting the sum of an element.
  bool computes(const cublaslt::Algorithm& algorithm, const kernels::LibraryProduct& product) const;
  cublaslt::Status multiply(const kernels::LibraryProduct& product, cudaStream_t stream);

  const cublaslt::Functions lt_;
  cublaslt::Handle handle_ = nullptr;
  cublaslt::Status failed_ = cublaslt::success;
  std::string failed_product_;
  std::map<uint64_t, std::optional<cublaslt::Algorithm>> algorithms_;   // by the XXH3 of what they depend on
  kernels::ProductLibrary library_;
};

}  // namespace stw::cuda
