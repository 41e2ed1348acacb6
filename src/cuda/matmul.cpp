#include "src/cuda/matmul.h"

#include <iterator>

#include "src/base/hash.h"

namespace stw::cuda {

using cublaslt::success;
using kernels::DType;
using kernels::LibraryProduct;

namespace {

// The number of rows that algorithms are chosen for where the real number depends on the micro-batch. This
// many rows keep a large device busy.
constexpr int64_t usual_rows = 8192;

cudaDataType type_of(DType t) {
  return t == DType::f32 ? CUDA_R_32F : t == DType::bf16 ? CUDA_R_16BF : CUDA_R_16F;
}

// All values that an algorithm may depend on. The struct has no padding, as its bytes are hashed.
struct Key {
  int64_t m, n, k, a_stride, b_stride, c_stride;
  uint32_t types, form;
};
Key key_of(const LibraryProduct& p) {
  return {p.free == LibraryProduct::Free::m ? usual_rows : p.m,
          p.n,
          p.k,
          p.a_stride,
          p.b_stride,
          p.c_stride,
          static_cast<uint32_t>(p.factors) * 16 + static_cast<uint32_t>(p.sum),
          (p.a_transposed ? 1u : 0u) | (p.b_transposed ? 2u : 0u) | (p.start ? 4u : 0u) | (p.bias ? 8u : 0u)};
}

uint64_t hash_of(const LibraryProduct& p) {
  const Key key = key_of(p);
  return hash64(&key, sizeof key);
}

Error error_of(const cublaslt::Functions& lt, const std::string& what, cublaslt::Status status) {
  Error e{Code::device_error, "cuBLASLt: " + what + ": " + lt.GetStatusName(status)};
  e.native = status;
  return e;
}

std::string extents_of(const LibraryProduct& p) {
  return "(" + std::to_string(p.m) + " x " + std::to_string(p.n) + ", depth " + std::to_string(p.k) + ")";
}

// Whether the status means that an algorithm, or all of them, cannot compute the product. Other failures say
// nothing about algorithms.
bool means_no_algorithm(cublaslt::Status status) {
  return status == cublaslt::not_supported || status == cublaslt::architecture_mismatch ||
         status == cublaslt::invalid_value;
}

}  // namespace

// A product in cuBLASLt's terms. Its matrices are column-major, and a row-major matrix is a transposed
// column-major one. It therefore computes cᵀ = bᵀ·aᵀ, with our b as the first factor.
struct Matmul::Descriptors {
  Descriptors(const cublaslt::Functions& functions, const LibraryProduct& p) : lt(functions) {
    add(lt.MatmulDescCreate(&product, cublaslt::compute_32f, CUDA_R_32F));
    const int32_t first = p.b_transposed ? cublaslt::transposed : cublaslt::not_transposed,
                  second = p.a_transposed ? cublaslt::transposed : cublaslt::not_transposed;
    set(cublaslt::transpose_a, first);
    set(cublaslt::transpose_b, second);
    if (p.bias) {
      set(cublaslt::epilogue, cublaslt::epilogue_bias);
      set(cublaslt::bias_pointer, p.bias);
      set(cublaslt::bias_type, static_cast<int32_t>(type_of(p.sum)));
    }
    const cudaDataType factors = type_of(p.factors), sum = type_of(p.sum);
    const auto m = static_cast<uint64_t>(p.m), n = static_cast<uint64_t>(p.n), k = static_cast<uint64_t>(p.k);
    add(lt.MatrixLayoutCreate(&a, factors, p.b_transposed ? k : n, p.b_transposed ? n : k, p.b_stride));
    add(lt.MatrixLayoutCreate(&b, factors, p.a_transposed ? m : k, p.a_transposed ? k : m, p.a_stride));
    add(lt.MatrixLayoutCreate(&c, sum, n, m, p.c_stride));
  }
  ~Descriptors() {
    for (cublaslt::Handle layout : {a, b, c})
      if (layout) lt.MatrixLayoutDestroy(layout);
    if (product) lt.MatmulDescDestroy(product);
  }
  Descriptors(const Descriptors&) = delete;

  void add(cublaslt::Status next) {
    if (status == success) status = next;
  }
  template <class T>
  void set(int attribute, const T& value) {
    if (status == success) status = lt.MatmulDescSetAttribute(product, attribute, &value, sizeof value);
  }

  const cublaslt::Functions& lt;
  cublaslt::Status status = success;
  cublaslt::Handle product = nullptr, a = nullptr, b = nullptr, c = nullptr;
};

Matmul::Matmul(const cublaslt::Functions& functions) : lt_(functions) {
  library_ = {this,
              [](void* self, const LibraryProduct& product) {
                auto& matmul = *static_cast<Matmul*>(self);
                return matmul.must_wait(product) || matmul.algorithm_for(product) != nullptr;
              },
              [](void* self, const LibraryProduct& product, void* stream) {
                auto& matmul = *static_cast<Matmul*>(self);
                if (matmul.must_wait(product)) return;
                matmul.note(matmul.multiply(product, static_cast<cudaStream_t>(stream)), "a product",
                            product);
              }};
}

Matmul::~Matmul() {
  if (handle_) lt_.Destroy(handle_);
}

Result<std::unique_ptr<Matmul>> Matmul::create(const std::string& path) {
  STW_ASSIGN(functions, cublaslt::load(path));
  std::unique_ptr<Matmul> matmul(new Matmul(functions));
  if (const cublaslt::Status status = functions.Create(&matmul->handle_); status != success)
    return error_of(functions, "a handle", status);
  return matmul;
}

stw::Status Matmul::take_error() {
  if (failed_ == success) return ok();
  const cublaslt::Status status = failed_;
  failed_ = success;
  return error_of(lt_, failed_product_, status);
}

void Matmul::note(cublaslt::Status status, const char* what, const LibraryProduct& product) {
  if (failed_ != success || status == success) return;
  failed_ = status;
  failed_product_ = std::string(what) + " " + extents_of(product);
}

cublaslt::Status Matmul::check(const cublaslt::Algorithm& algorithm, const LibraryProduct& product) const {
  const Descriptors d(lt_, product);
  if (d.status != success) return d.status;
  cublaslt::HeuristicResult result{};
  const cublaslt::Status status =
      lt_.MatmulAlgoCheck(handle_, d.product, d.a, d.b, d.c, d.c, &algorithm, &result);
  return status == success && result.workspace_bytes > 0 ? cublaslt::not_supported : status;
}

cublaslt::Status Matmul::choose(const LibraryProduct& product,
                                std::optional<cublaslt::Algorithm>& chosen) const {
  const Descriptors d(lt_, product);
  cublaslt::Handle preference = nullptr;
  cublaslt::Status status = d.status == success ? lt_.MatmulPreferenceCreate(&preference) : d.status;
  const auto prefer = [&](int attribute, const auto& value) {
    if (status == success)
      status = lt_.MatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
  };
  prefer(cublaslt::max_workspace, uint64_t{0});
  prefer(cublaslt::reduction_schemes, uint32_t{0});  // each element is summed by one block
  for (int operand = cublaslt::alignment_a; operand <= cublaslt::alignment_d; ++operand)
    prefer(operand, uint32_t{16});
  cublaslt::HeuristicResult found[8] = {};
  int count = 0;
  if (status == success) {
    status = lt_.MatmulAlgoGetHeuristic(handle_, d.product, d.a, d.b, d.c, d.c, preference,
                                        static_cast<int>(std::size(found)), found, &count);
    if (means_no_algorithm(status)) status = success, count = 0;
  }
  if (preference) lt_.MatmulPreferenceDestroy(preference);
  LibraryProduct smallest = product;
  if (product.free == LibraryProduct::Free::m) smallest.m = 1;
  for (int i = 0; status == success && i < count; ++i) {  // in order of preference
    const cublaslt::Algorithm& algorithm = found[i].algorithm;
    int32_t splits = 0;
    if (found[i].status != success || found[i].workspace_bytes > 0) continue;
    if (lt_.MatmulAlgoConfigGetAttribute(&algorithm, cublaslt::split_k, &splits, sizeof splits, nullptr) !=
            success ||
        splits > 1)
      continue;
    const cublaslt::Status checked = check(algorithm, smallest);
    if (means_no_algorithm(checked)) continue;
    if (checked == success) chosen = algorithm;
    return checked;
  }
  return status;
}

bool Matmul::must_wait(const LibraryProduct& p) {
  if (!defers_ || algorithms_.contains(hash_of(p))) return false;
  waiting_.push_back(p);
  return true;
}

bool Matmul::choose_waiting() {
  const bool any = !waiting_.empty();
  for (const LibraryProduct& p : waiting_) algorithm_for(p);
  waiting_.clear();
  return any;
}

const cublaslt::Algorithm* Matmul::algorithm_for(const LibraryProduct& p) {
  const auto [entry, is_new] = algorithms_.try_emplace(hash_of(p));
  if (is_new) {
    LibraryProduct usual = p;
    usual.m = key_of(p).m;
    if (const cublaslt::Status status = choose(usual, entry->second); status != success) {
      algorithms_.erase(entry);
      note(status, "the choice of an algorithm for a product", p);
      return nullptr;
    }
    if (!entry->second)
      declined_.push_back("cuBLASLt has no algorithm for products " + extents_of(usual) +
                          ": our own kernels compute them");
  }
  return entry->second ? &*entry->second : nullptr;
}

cublaslt::Status Matmul::multiply(const LibraryProduct& p, cudaStream_t stream) {
  if (p.m == 0 || p.n == 0) return success;
  const cublaslt::Algorithm* const algorithm = algorithm_for(p);
  const Descriptors d(lt_, p);
  if (d.status != success || !algorithm) return algorithm ? d.status : cublaslt::not_supported;
  const float one = 1, beta = p.start ? 1.0f : 0.0f;
  return lt_.Matmul(handle_, d.product, &one, p.b, d.a, p.a, d.b, &beta, p.start ? p.start : p.c, d.c, p.c,
                    d.c, algorithm, nullptr, 0, stream);
}

}  // namespace stw::cuda
