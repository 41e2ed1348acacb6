// Finds the tables that this build contains and this processor can run. Compiled once, for the baseline
// instruction set. The build defines STW_HAVE_AVX2, STW_HAVE_AVX512 and STW_HAVE_NEON if it compiled the
// kernels for them.
#include <initializer_list>

#ifdef STW_HAVE_AVX2
#include <cpuid.h>
#endif

#include "kernels/contract/kernels.h"

namespace stw::kernels {

namespace scalar {
extern const Table table;
}
#ifdef STW_HAVE_AVX2
namespace avx2 {
extern const Table table;
}
#endif
#ifdef STW_HAVE_AVX512
namespace avx512 {
extern const Table table;
}
#endif
#ifdef STW_HAVE_NEON
namespace neon {
extern const Table table;
}
#endif

#ifdef STW_HAVE_AVX2
// Whether the processor converts fp16. __builtin_cpu_supports of clang 14 does not know this feature.
static bool has_f16c() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
// Required by every table for AVX.
static bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}
#endif

const Table* cpu_table(Isa isa) {
  switch (isa) {
    case Isa::scalar: return &scalar::table;
    case Isa::avx2:
#ifdef STW_HAVE_AVX2
      if (has_avx2()) return &avx2::table;
#endif
      return nullptr;
    case Isa::avx512:
#ifdef STW_HAVE_AVX512
      if (has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return &avx512::table;
#endif
      return nullptr;
    case Isa::neon:  // Every build for ARM has NEON in its baseline.
#ifdef STW_HAVE_NEON
      return &neon::table;
#else
      return nullptr;
#endif
  }
  return nullptr;
}

Isa best_isa() {
  for (Isa isa : {Isa::avx512, Isa::avx2, Isa::neon})
    if (cpu_table(isa) != nullptr) return isa;
  return Isa::scalar;
}

}  // namespace stw::kernels
