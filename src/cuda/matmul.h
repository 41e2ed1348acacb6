// Matrix products by cuBLASLt, through the kernels' interface (kernels/contract/product_library.h).
//
// Each kind of product (types, epilogue, and all extents except one that depends on the micro-batch) has one
// algorithm. It is chosen for a usual number of rows and kept, so that the number of rows in a micro-batch
// changes no bit (contract E3). Algorithms that split an element's sum over blocks are skipped: they need
// scratch memory, which they do not get, and their sums would depend on the number of rows. If cuBLASLt has
// no such algorithm for a kind of product, our own kernels compute all products of that kind.
//
// Algorithms are chosen while no stream is recorded, as cuBLASLt 13.3 cannot choose during a recording. If a
// recording asks for a product of a new kind, the choice waits, and the recording must be repeated.
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
  // On the current device. Errors: unsupported without cuBLASLt, otherwise cuBLASLt's own. `path`: see
  // cublaslt::load.
  static Result<std::unique_ptr<Matmul>> create(const std::string& path);
  ~Matmul();
  Matmul(const Matmul&) = delete;

  const kernels::ProductLibrary* library() const { return &library_; }
  // The first error since the last call.
  stw::Status take_error();
  // Kinds of products found since the last call to have no algorithm, for a message.
  std::vector<std::string> take_declined() { return std::exchange(declined_, {}); }
  // While a stream is recorded, choices wait: products of new kinds are accepted and not computed.
  void defer(bool is_recording) { defers_ = is_recording; }
  // Makes the waiting choices. True: there were some, so that the recording must be repeated.
  bool choose_waiting();

 private:
  explicit Matmul(const cublaslt::Functions& functions);
  struct Descriptors;
  bool must_wait(const kernels::LibraryProduct& product);
  // Null where there is no algorithm. Also null where cuBLASLt failed: the error is noted, and the next call
  // asks again.
  const cublaslt::Algorithm* algorithm_for(const kernels::LibraryProduct& product);
  // nullopt where cuBLASLt has no algorithm. Errors: a failure of cuBLASLt, which says nothing about
  // algorithms.
  cublaslt::Status choose(const kernels::LibraryProduct& product,
                          std::optional<cublaslt::Algorithm>& chosen) const;
  // not_supported where the algorithm needs scratch memory, or does not compute the product.
  cublaslt::Status check(const cublaslt::Algorithm& algorithm, const kernels::LibraryProduct& product) const;
  void note(cublaslt::Status status, const char* what, const kernels::LibraryProduct& product);
  cublaslt::Status multiply(const kernels::LibraryProduct& product, cudaStream_t stream);

  const cublaslt::Functions lt_;
  cublaslt::Handle handle_ = nullptr;
  cublaslt::Status failed_ = cublaslt::success;
  std::string failed_product_;
  std::vector<std::string> declined_;
  std::map<uint64_t, std::optional<cublaslt::Algorithm>> algorithms_;  // by the hash of what one depends on
  bool defers_ = false;
  std::vector<kernels::LibraryProduct> waiting_;
  kernels::ProductLibrary library_;
};

}  // namespace stw::cuda
