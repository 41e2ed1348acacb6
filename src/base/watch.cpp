#include "src/base/watch.h"

#include <algorithm>

namespace stw {

WorkState Watch::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

void Watch::begin(const WorkState& state) {
  if (notify_) notified_ = Clock::now();  // the first notification comes after an interval
  std::lock_guard lock(mutex_);
  state_ = state;
}

bool Watch::set(const WorkState& state) {
  {
    std::lock_guard lock(mutex_);
    state_ = state;
  }
  if (!notify_) return true;
  const Clock::time_point now = Clock::now();
  if (now - notified_ < interval_) return true;
  notified_ = now;
  const Unsupervised callback;
  return notify_(state);
}

void Watch::end() {
  std::lock_guard lock(mutex_);
  state_.work = Work::none;
}

LongCall::CancelSource LongCall::from(CancelFlag* flag, EarlierCancel earlier) {
  if (!flag) return {nullptr, 0};
  return {flag, earlier == EarlierCancel::stops ? flag->taken() : flag->requests()};
}

LongCall::LongCall(const WorkState& begin, const char* message, Watch* watch, CancelFlag* own,
                   EarlierCancel earlier)
    : message_(message),
      watch_(watch),
      own_(from(own, earlier)),
      host_(from(watch ? &watch->flag() : nullptr, earlier)),
      outer_(supervisor),
      state_(begin) {
  if (watch_) watch_->begin(state_);
  supervisor = this;
}

LongCall::~LongCall() {
  supervisor = outer_;
  if (watch_) watch_->end();
}

bool LongCall::stops() const noexcept {
  return !committed_.load(std::memory_order_relaxed) && (own_.any() || host_.any());
}

void LongCall::leave() {
  for (const CancelSource& source : {own_, host_})
    if (source.flag) source.flag->take();
  throw Cancelled{message_};
}

void LongCall::notify() {
  state_.share =
      state_.total > 0
          ? std::min(1.0, (static_cast<double>(state_.done) + within_) / static_cast<double>(state_.total))
          : 0;
  // After commit() the host cannot stop the call.
  if (!watch_->set(state_) && !committed_.load(std::memory_order_relaxed)) leave();
}

void LongCall::look(uint64_t more) {
  state_.done += more;
  if (more > 0) within_ = 0;
  // A check-in that counts no work notifies only if an interval has passed. The clock is read at every 64th
  // of them.
  constexpr uint32_t looks_per_notification = 64;
  if (watch_ && (more > 0 || ++looks_ % looks_per_notification == 0)) notify();
  if (stops()) leave();
}

void LongCall::within(double share) {
  within_ = share;
  if (watch_) notify();
  if (stops()) leave();
}

}  // namespace stw
