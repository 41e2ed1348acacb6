// Counts the allocations of the whole process, and makes them fail.
#pragma once
#include <atomic>
#include <cstdint>

namespace stw::api_test {

extern std::atomic<uint64_t> allocations;  // so far; without -DSTW_COUNT_MALLOC only those of operator new
extern std::atomic<int64_t> live_objects;  // of operator new
// `others` more allocations succeed, then one fails. `for_good`: all later ones fail too.
void fail_after(int64_t others, bool for_good = false);
// Lets all allocations succeed again, and returns whether one has failed.
bool end_of_failures();

}  // namespace stw::api_test
