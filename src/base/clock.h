// A monotonic clock.
#pragma once
#include <chrono>

namespace stw {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace stw
