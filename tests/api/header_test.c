/* stowage.h compiles alone: as C99 and C11 here, as C++17 from header_test.cpp. */
#include "stowage.h"

uint32_t stw_header_test(void);
uint32_t stw_header_test(void) {
  stw_plan_options options;
  options.struct_size = sizeof options;
  return options.struct_size;
}
