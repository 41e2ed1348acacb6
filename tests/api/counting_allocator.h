// Counts and fails the allocations of the whole process.
#pragma once
#include <atomic>
#include <cstdint>

namespace stw::api_test {

extern std::atomic<uint64_t> allocations;     // so far; without -DSTW_COUNT_MALLOC those of operator new alone
extern std::atomic<int64_t> live_objects;     // of operator new
extern std::atomic<int64_t> until_failure;    // the operator new after this many others fails, once; negative: none

}  // namespace stw::api_test
