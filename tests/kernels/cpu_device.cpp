// The CPU's kernels: every instruction set that this build has and this machine runs.
#include "tests/kernels/device.h"

namespace stw::kernels::test {

std::vector<NamedTable> tables() {
  std::vector<NamedTable> found;
  const struct {
    const char* name;
    Isa isa;
  } all[] = {{"scalar", Isa::scalar}, {"avx2", Isa::avx2}, {"avx512", Isa::avx512}, {"neon", Isa::neon}};
  for (const auto& entry : all)
    if (const Table* table = cpu_table(entry.isa)) found.push_back({entry.name, table});
  return found;
}

bool emulated() { return false; }
bool has_warpgroups() { return false; }

const ProductLibrary* product_library() { return nullptr; }
const AttentionLibrary* attention_library() { return nullptr; }
std::string library_error() { return {}; }

uint64_t workspace_for(void (*)(), const void*, uint64_t otherwise) { return otherwise; }

void finish_kernels() {}

}  // namespace stw::kernels::test
