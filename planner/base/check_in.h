// Cancels long computations. A computation calls check_in() between two pieces of its work. If the caller of
// the library has cancelled the call, check_in() throws. Therefore functions need neither an argument nor a
// result for cancellation.
#pragma once
#include <cstdint>

namespace stw {

// Thrown by check_in(). The boundary of the C API turns it into STW_CANCELLED. `message` is one line, with
// static storage.
struct Cancelled {
  const char* message;
};

// A call that can be cancelled and that reports its progress (src/base/watch.h).
class Supervisor {
 public:
  // Whether the work must end. Thread: any.
  virtual bool is_cancelled() const noexcept = 0;
  // Counts `units` of work as done. Throws Cancelled if the work must end. Thread: the thread of the call;
  // the same holds for the functions below.
  virtual void advance(uint64_t units) = 0;
  // Sets the share of the current unit that is done, 0 to 1. Throws as advance() does.
  virtual void set_unit_progress(double share) = 0;
  // Called when the work can no longer be undone. From then on it runs to its end, even if the caller
  // cancels.
  virtual void commit() noexcept = 0;
  virtual bool is_committed() const noexcept = 0;
  [[noreturn]] virtual void throw_cancelled() = 0;

 protected:
  ~Supervisor() = default;
};

// The supervisor of the call on this thread. Null if that call cannot be cancelled.
extern constinit thread_local Supervisor* supervisor;

// Counts `units` of work as done. Throws Cancelled if the call must end.
void check_in(uint64_t units = 0);

// While this object lives, work of this thread is neither cancelled nor counted.
class Unsupervised {
 public:
  Unsupervised() : before_(supervisor) { supervisor = nullptr; }
  ~Unsupervised() { supervisor = before_; }
  Unsupervised(const Unsupervised&) = delete;

 private:
  Supervisor* const before_;
};

}  // namespace stw
