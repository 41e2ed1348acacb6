/* stowage.h and stowage/dlpack.h compile alone, as C99 and C11 here and as C++98 to C++20 in header_test.cpp.
 * STW_INIT compiles without a warning. */
#include "stowage.h"
#include "stowage/dlpack.h"

static stw_device_options at_rest = STW_INIT(stw_device_options);

uint32_t stw_header_test(void);
uint32_t stw_header_test(void) {
  stw_error error = STW_INIT(stw_error);
  stw_model_options of_model = STW_INIT(stw_model_options);
  stw_plan_options of_plan = STW_INIT(stw_plan_options);
  DLManagedTensorVersioned tensor;
  of_plan = (stw_plan_options)STW_INIT(stw_plan_options);
  tensor.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  return error.struct_size + of_model.struct_size + of_plan.struct_size + at_rest.struct_size +
         (uint32_t)(tensor.flags * (uint64_t)kDLCPU);
}
