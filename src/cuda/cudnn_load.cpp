#include "src/cuda/cudnn.h"
#include "src/cuda/shared_library.h"

namespace stw::cuda::cudnn {

Result<Functions> load(const std::string& path) {
  Functions functions;
  const LibrarySearch search{"cuDNN",
                             {path.empty() ? "libcudnn.so.9" : path},
                             "install NVIDIA's cuDNN, 9.15.1 or newer (package libcudnn9-cuda-13), let "
                             "LD_LIBRARY_PATH or stw_device_options.cudnn find "
                             "its libcudnn.so.9, or use our own attention"};
  const LibrarySymbols symbols = {
#define STW_CUDNN_SYMBOL(name, Returned, arguments) \
  {"cudnn" #name, reinterpret_cast<void**>(&functions.name)},
      STW_CUDNN_FUNCTIONS(STW_CUDNN_SYMBOL)
#undef STW_CUDNN_SYMBOL
  };
  STW_TRY(load_functions(search, symbols));
  return functions;
}

}  // namespace stw::cuda::cudnn
