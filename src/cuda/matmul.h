// Matrix products by cuBLASLt, as the kernels ask for them (kernels/product_library.h).
//
// One algorithm for each kind of product: types, extents but for the free one, epilogue. It is chosen for a usual number of rows
// and kept, so that the rows of a micro-batch change no bit (contract E3). Algorithms that split the sum of an element over blocks
// are left out: they need scratch memory, which they do not get, and their sums would depend on the number of rows.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
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
  cublaslt::Status multiply(const kernels::LibraryProduct& product, cudaStream_t stream);
  cublaslt::Status choose(const kernels::LibraryProduct& product, cublaslt::Algorithm& algorithm) const;

  const cublaslt::Functions lt_;
  cublaslt::Handle handle_ = nullptr;
  cublaslt::Status failed_ = cublaslt::success;
  std::map<uint64_t, cublaslt::Algorithm> algorithms_;   // by the XXH3 of what they depend on
  kernels::ProductLibrary library_;
};

}  // namespace stw::cuda
