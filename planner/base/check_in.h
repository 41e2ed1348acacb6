// How long work is cancelled: it checks in between two pieces, and an exception ends it there if the caller of the library has
// cancelled the call. So what computes for long needs no argument for that, and no result of it.
#pragma once
#include <cstdint>

namespace stw {

// What check_in() throws; the boundary of the C API turns it into STW_CANCELLED. `message` is one line and lives for ever.
struct Cancelled { const char* message; };

// A call that can be cancelled and tells how far it is (src/base/watch.h).
class Supervisor {
 public:
  // Whether the work is to end. Any thread.
  virtual bool stops() const noexcept = 0;
  // Counts so many more units of work as done. Throws Cancelled where it stops. The thread of the call alone, as the following.
  virtual void look(uint64_t more) = 0;
  // The share of the unit under way that is done, 0 to 1. Throws as look() does.
  virtual void within(double share) = 0;
  // From now on the work cannot be undone: it goes on to its end, whatever the caller asks.
  virtual void commit() noexcept = 0;
  [[noreturn]] virtual void leave() = 0;   // throws Cancelled

 protected:
  ~Supervisor() = default;
};

// Of the call under way on this thread; null where it cannot be cancelled.
extern constinit thread_local Supervisor* supervisor;

// Counts so many more units as done. Throws Cancelled where the call is to end.
void check_in(uint64_t more = 0);

// While it lives, nothing that this thread does is cancelled or counted.
class Unsupervised {
 public:
  Unsupervised() : before_(supervisor) { supervisor = nullptr; }
  ~Unsupervised() { supervisor = before_; }
  Unsupervised(const Unsupervised&) = delete;

 private:
  Supervisor* const before_;
};

}  // namespace stw
