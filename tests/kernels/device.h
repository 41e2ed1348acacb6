// The kernels under test. The bodies of the tests are compiled once; a program links cpu_device.cpp, or
// cuda_device.cpp with the emulated machine (tests/simt) or a real one (tests/gpu).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/contract/attention_library.h"
#include "kernels/contract/product_library.h"

namespace stw::kernels::test {

struct NamedTable {
  const char* name;
  const Table* table;
};

// All tables that compute the same bits here. The CPU's scalar table comes first; in a program for CUDA, the
// device's table comes last.
std::vector<NamedTable> tables();

// Kernels run on the emulated machine, which is too slow for large shapes.
bool emulated();

// Scratch memory in bytes of a CUDA kernel called with `args`; for other tables `otherwise`.
uint64_t workspace_for(void (*kernel)(), const void* args, uint64_t otherwise);

// Whether ProductKernels::warpgroup uses warpgroup kernels here, not its fallback.
bool has_warpgroups();
// Our own kernels for tensor cores.
inline std::vector<ProductKernels> tensor_kernels() {
  if (has_warpgroups()) return {ProductKernels::tensor, ProductKernels::warpgroup};
  return {ProductKernels::tensor};
}

// The vendor's library for products. Null if it is not installed.
const ProductLibrary* product_library();
const AttentionLibrary* attention_library();
std::string library_error();  // Errors of the library since the last call; empty: no error.

// Waits until all launched kernels have ended.
void finish_kernels();

}  // namespace stw::kernels::test
