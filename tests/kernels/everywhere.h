// Contract E4 for a test: runs the same call on every table and with several numbers of threads. Results must
// be the same.
#pragma once
#include "tests/kernels/harness.h"

namespace stw::kernels::test {

// call(table, threads) returns the outputs as Buffers. Returns the first result.
template <class Call>
std::vector<Buffer> everywhere(const Call& call) {
  std::vector<Buffer> first;
  for (const NamedTable& entry : tables())
    for (int threads : {1, 3}) {
#ifdef STW_SANITIZED
      if (threads == 1 && !first.empty()) continue;  // one table suffices to test a single thread
#endif
      std::vector<Buffer> result = call(*entry.table, threads);
      if (first.empty()) first = result;
      EXPECT_EQ(first.size(), result.size());
      for (size_t i = 0; i < first.size(); ++i)
        EXPECT_TRUE(same_bits(first[i], result[i]))
            << entry.name << ", " << threads << " threads, output " << i;
    }
  return first;
}

inline float* floats_of(Buffer& buffer) { return static_cast<float*>(buffer.data()); }

}  // namespace stw::kernels::test
