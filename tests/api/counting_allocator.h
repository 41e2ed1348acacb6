// Counts the allocations of the whole process, and makes them fail.
#pragma once
#include <atomic>
#include <cstdint>

namespace stw::api_test {

extern std::atomic<uint64_t> allocations;  // so far; without -DSTW_COUNT_MALLOC only those of operator new
extern std::atomic<int64_t> live_objects;  // of operator new
// Lets the allocation after `others` more fail: only that one, or all later ones too.
void fail_after(int64_t others, bool for_good = false);
// Ends this, and returns whether an allocation has failed.
bool end_of_failures();

}  // namespace stw::api_test
