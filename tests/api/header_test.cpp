// stowage.h compiles alone as C++17, and its entries do not throw there.
#include "stowage.h"

static_assert(noexcept(stw_version()), "entries are noexcept for C++ hosts");
static_assert(noexcept(stw_trainer_cancel(nullptr)), "entries are noexcept for C++ hosts");
