// Whose kernels a test program judges: the bodies of the tests are compiled once, and a program links cpu_device.cpp, or
// cuda_device.cpp with the emulated machine (tests/simt) or a real one (tests/gpu).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/contract/attention_library.h"
#include "kernels/contract/product_library.h"

namespace stw::kernels::test {

struct NamedTable { const char* name; const Table* table; };

// All that compute the same bits here. The CPU's scalar one comes first; of a program for CUDA the last is the device's.
std::vector<NamedTable> tables();

// Kernels run on the emulated machine: too slow for large shapes.
bool emulated();

// Scratch memory in bytes of a kernel that is the CUDA device's, called with `args`; of others `otherwise`.
uint64_t workspace_for(void (*kernel)(), const void* args, uint64_t otherwise);

// Whether ProductKernels::warpgroup runs here, where it is something of its own.
bool has_warpgroups();
// Our own kernels for tensor cores.
inline std::vector<ProductKernels> tensor_kernels() {
  if (has_warpgroups()) return {ProductKernels::tensor, ProductKernels::warpgroup};
  return {ProductKernels::tensor};
}

// For kernels that ask the vendor's library for products; null where there is none.
const ProductLibrary* product_library();
const AttentionLibrary* attention_library();
std::string library_error();   // what went wrong there since the last call; empty: nothing

// Until all kernels that were begun have ended.
void finish_kernels();

}  // namespace stw::kernels::test
