// The kernels of one instruction set as a table. A missing kernel does not link.
#include "kernels/cpu/kernels_isa.h"

namespace stw::kernels::STW_ISA {
extern constexpr Table table = {
#define STW_KERNEL_POINTER(name, Args) &STW_ISA::name,
    STW_KERNELS(STW_KERNEL_POINTER)
#undef STW_KERNEL_POINTER
};
}  // namespace stw::kernels::STW_ISA
