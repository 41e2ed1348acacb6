// Long calls: cancelling them, and notifying the host of their progress.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>

#include "planner/base/check_in.h"

namespace stw {

enum class Work : uint8_t {
  none,
  plan,
  open_dataset,
  create_trainer,
  step,
  evaluate,
  generate,
  calibrate,
  save,
  restore,
  export_model
};
enum class WorkUnit : uint8_t { none, bytes, micro_steps, samples };

struct WorkState {
  Work work = Work::none;
  WorkUnit unit = WorkUnit::none;
  uint64_t done = 0, total = 0;  // units; a total of 0 is unknown
  double share = 0;              // share of the work that is done, 0 to 1
};

// Counts cancels. A call that is stopped takes all cancels so far, so that the next call runs. request() is
// one atomic addition, which a signal handler may make.
class CancelFlag {
 public:
  void request() noexcept { requests_.fetch_add(1, std::memory_order_relaxed); }
  uint32_t requests() const noexcept { return requests_.load(std::memory_order_relaxed); }
  uint32_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }
  void take() noexcept { taken_.store(requests(), std::memory_order_relaxed); }  // all cancels so far
  static_assert(std::atomic<uint32_t>::is_always_lock_free);

 private:
  std::atomic<uint32_t> requests_ = 0, taken_ = 0;
};

// Owned by the host, which may use it for one call after another.
class Watch {
 public:
  using Notify = std::function<bool(const WorkState&)>;  // false: stop the call
  Watch(Notify notify, std::chrono::milliseconds interval)
      : notify_(std::move(notify)), interval_(interval) {}
  CancelFlag& flag() { return flag_; }
  WorkState state() const;
  // Sets the state of a new call.
  void begin(const WorkState& state);
  // Updates the state, and notifies the host once an interval has passed. False: the host stops the call.
  bool set(const WorkState& state);
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  const Notify notify_;
  const std::chrono::milliseconds interval_;
  CancelFlag flag_;
  mutable std::mutex mutex_;
  WorkState state_;
  Clock::time_point notified_{};
};

// Treatment of a cancel that came before the call: it stops this call, or waits for the next one. Calls that
// save results use `waits`, so that a host that was asked to end can save first.
enum class EarlierCancel : uint8_t { stops, waits };

// One long call of this thread, for the object's lifetime.
class LongCall final : public Supervisor {
 public:
  // `message`: the error message if the call is cancelled. `watch`: the host's; may be null. `own`: the flag
  // of the object that is called, such as a trainer; may be null.
  LongCall(const WorkState& begin, const char* message, Watch* watch, CancelFlag* own = nullptr,
           EarlierCancel earlier = EarlierCancel::stops);
  ~LongCall();
  LongCall(const LongCall&) = delete;

  bool is_cancelled() const noexcept override;
  void advance(uint64_t units) override;
  void set_unit_progress(double share) override;
  void commit() noexcept override { committed_.store(true, std::memory_order_relaxed); }
  bool is_committed() const noexcept override { return committed_.load(std::memory_order_relaxed); }
  [[noreturn]] void throw_cancelled() override;

 private:
  void notify();
  struct CancelSource {  // a flag, and the number of its cancels that came before this call
    CancelFlag* flag;
    uint32_t before;
    bool any() const noexcept { return flag && flag->requests() != before; }
  };
  static CancelSource from(CancelFlag* flag, EarlierCancel earlier);

  const char* const message_;
  Watch* const watch_;
  const CancelSource own_, host_;
  Supervisor* const outer_;
  WorkState state_;
  double unit_progress_ = 0;
  uint32_t check_ins_ = 0;
  std::atomic<bool> committed_ = false;
};

}  // namespace stw
