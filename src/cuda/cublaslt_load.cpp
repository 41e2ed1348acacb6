#include <dlfcn.h>

#include <string>
#include <utility>
#include <vector>

#include "src/cuda/cublaslt.h"

namespace stw::cuda::cublaslt {

static Error missing(const std::string& why) {
  return {Code::unsupported, "cuBLASLt: " + why + "; install NVIDIA's cuBLAS 13 (package libcublas-13-0, or the CUDA Toolkit), let "
                             "LD_LIBRARY_PATH or stw_device_options.cublaslt find its libcublasLt.so.13, or use other kernels"};
}

Result<Functions> load(const std::string& path) {
  void* library = nullptr;
  std::string why;
  for (const std::string& name : path.empty() ? std::vector<std::string>{"libcublasLt.so.13", "libcublasLt.so.12"} : std::vector<std::string>{path}) {
    library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    const char* const said = dlerror();
    if (why.empty()) why = said ? said : name;
  }
  if (!library) return missing(why);
  Functions functions;
  for (const auto& [name, function] : {
#define STW_CUBLASLT_SYMBOL(name, Returned, arguments) std::pair{"cublasLt" #name, reinterpret_cast<void**>(&functions.name)},
           STW_CUBLASLT_FUNCTIONS(STW_CUBLASLT_SYMBOL)
#undef STW_CUBLASLT_SYMBOL
       }) {
    *function = dlsym(library, name);
    if (!*function) return missing(std::string("the library has no ") + name);
  }
  return functions;
}

}  // namespace stw::cuda::cublaslt
