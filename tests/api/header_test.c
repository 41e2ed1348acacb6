/* stowage.h compiles alone: as C99 and C11 here, as C++17 from header_test.cpp. */
#include "stowage.h"

int stw_header_test(void);
int stw_header_test(void) {
  const stw_plan_options options = {sizeof options};
  return (int)options.struct_size;
}
