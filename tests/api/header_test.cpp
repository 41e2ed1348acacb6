// stowage.h and stowage/dlpack.h compile alone as C++98 to C++20 (header_standards_test.py). Returns 0 if
// STW_INIT sets what it should.
#include "stowage.h"
#include "stowage/dlpack.h"

#if __cplusplus >= 201103L
static_assert(noexcept(stw_version()), "entries are noexcept for C++ hosts");
static_assert(noexcept(stw_trainer_cancel(nullptr)), "entries are noexcept for C++ hosts");
#endif

static stw_device_options at_rest = STW_INIT(stw_device_options);

int main() {
  stw_error error = STW_INIT(stw_error);
  stw_plan_options options = STW_INIT(stw_plan_options);
  options = STW_INIT(stw_plan_options);
  DLManagedTensorVersioned tensor;
  tensor.flags = 0;
  const bool sized = error.struct_size == sizeof error && options.struct_size == sizeof options &&
                     at_rest.struct_size == sizeof at_rest;
  return sized && options.global_batch == 0 && error.message[0] == '\0' && tensor.flags == 0 ? 0 : 1;
}
