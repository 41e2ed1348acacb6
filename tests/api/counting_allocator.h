// Counts and fails the allocations of the whole process.
#pragma once
#include <atomic>
#include <cstdint>

namespace stw::api_test {

extern std::atomic<uint64_t> allocations;     // so far; without -DSTW_COUNT_MALLOC those of operator new alone
extern std::atomic<int64_t> live_objects;     // of operator new
// The operator new after this many others fails: that one, or it and all behind it.
void fail_after(int64_t others, bool for_good = false);
// Whether it came to that.
bool end_of_failures();

}  // namespace stw::api_test
