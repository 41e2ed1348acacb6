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

bool LongCall::is_cancelled() const noexcept { return !is_committed() && (own_.any() || host_.any()); }

void LongCall::throw_cancelled() {
  for (const CancelSource& source : {own_, host_})
    if (source.flag) source.flag->take();
  throw Cancelled{message_};
}

void LongCall::notify() {
  state_.share = state_.total > 0 ? std::min(1.0, (static_cast<double>(state_.done) + unit_progress_) /
                                                      static_cast<double>(state_.total))
                                  : 0;
  // After commit() the host cannot stop the call.
  if (!watch_->set(state_) && !is_committed()) throw_cancelled();
}

void LongCall::advance(uint64_t units) {
  state_.done += units;
  if (units > 0) unit_progress_ = 0;
  // notify() reads the clock. Of the check-ins that count no work, only every 64th calls it.
  constexpr uint32_t check_ins_per_notification = 64;
  if (watch_ && (units > 0 || ++check_ins_ % check_ins_per_notification == 0)) notify();
  if (is_cancelled()) throw_cancelled();
}

void LongCall::set_unit_progress(double share) {
  unit_progress_ = share;
  if (watch_) notify();
  if (is_cancelled()) throw_cancelled();
}

}  // namespace stw
