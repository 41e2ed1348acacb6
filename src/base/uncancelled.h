// POSIX thread cancellation unwinds a thread wherever it waits, and would leave our objects half changed.
#pragma once
#include <pthread.h>

namespace stw {

// While it lives, a pthread_cancel of the calling thread is deferred.
class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace stw
