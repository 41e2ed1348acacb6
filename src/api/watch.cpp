#include "src/base/watch.h"

#include "src/api/boundary.h"

using namespace stw;

namespace {

static_assert(STW_WORK_PLAN == int{static_cast<uint8_t>(Work::plan)} &&
              STW_WORK_STEP == int{static_cast<uint8_t>(Work::step)} &&
              STW_WORK_CALIBRATE == int{static_cast<uint8_t>(Work::calibrate)} &&
              STW_WORK_EXPORT == int{static_cast<uint8_t>(Work::export_model)});
static_assert(STW_UNIT_BYTES == int{static_cast<uint8_t>(WorkUnit::bytes)} &&
              STW_UNIT_SAMPLES == int{static_cast<uint8_t>(WorkUnit::samples)});

constexpr uint32_t default_interval = 100;  // milliseconds

stw_watch_info info_of(const WorkState& state) {
  stw_watch_info info{};
  info.struct_size = sizeof info;
  info.work = static_cast<uint32_t>(state.work);
  info.unit = static_cast<uint32_t>(state.unit);
  info.done = state.done;
  info.total = state.total;
  info.share = state.share;
  return info;
}

}  // namespace

extern "C" {

stw_status stw_watch_create(stw_watch** out, const stw_watch_options* options,
                            stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (!out) return api::fail(error, Code::bad_argument, "out is NULL");
    *out = nullptr;
    stw_watch_options o;
    STW_API_TRY(api::read_options(options, o, "watch options"));
    STW_API_TRY(api::check_mask(o.set_mask, STW_SET_INTERVAL, "watch options"));
    STW_API_TRY(api::check_reserved(o.reserved, "watch options"));
    Watch::Notify notify;
    if (o.notify)
      notify = [notify = o.notify, user = o.user](const WorkState& state) {
        const stw_watch_info info = info_of(state);
        const FloatMode mode;  // restores the mode after the callback
        return notify(user, &info) == 0;
      };
    const uint32_t interval =
        api::value_if_set(o.set_mask, STW_SET_INTERVAL, o.interval_milliseconds).value_or(default_interval);
    *out = new stw_watch(std::move(notify), std::chrono::milliseconds(interval));
    return STW_OK;
  });
}

void stw_watch_destroy(stw_watch* watch) STW_NOEXCEPT { delete watch; }

void stw_watch_cancel(stw_watch* watch) STW_NOEXCEPT {
  if (watch) watch->watch.flag().request();
}

stw_status stw_watch_query(const stw_watch* watch, stw_watch_info* out) STW_NOEXCEPT {
  return api::guard(nullptr, [&]() -> stw_status {
    if (!watch || !out) return STW_BAD_ARGUMENT;
    return api::write_info(info_of(watch->watch.state()), out);
  });
}

}  // extern "C"
