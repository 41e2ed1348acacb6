#include "src/cuda/cublaslt.h"
#include "src/cuda/shared_library.h"

namespace stw::cuda::cublaslt {

Result<Functions> load(const std::string& path) {
  Functions functions;
  const LibrarySearch search{
      "cuBLASLt",
      path.empty() ? std::vector<std::string>{"libcublasLt.so.13", "libcublasLt.so.12"} : std::vector{path},
      "install NVIDIA's cuBLAS 13 (package libcublas-13-0, or the CUDA Toolkit), let LD_LIBRARY_PATH or "
      "stw_device_options.cublaslt find its libcublasLt.so.13, or use other kernels"};
  const LibrarySymbols symbols = {
#define STW_CUBLASLT_SYMBOL(name, Returned, arguments) \
  {"cublasLt" #name, reinterpret_cast<void**>(&functions.name)},
      STW_CUBLASLT_FUNCTIONS(STW_CUBLASLT_SYMBOL)
#undef STW_CUBLASLT_SYMBOL
  };
  STW_TRY(load_functions(search, symbols));
  return functions;
}

}  // namespace stw::cuda::cublaslt
