// The boundary of the C API: handles, option structs of any version, errors. No exception passes it.
#pragma once
#include <cxxabi.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "include/stowage.h"
#include "planner/base/check_in.h"
#include "planner/base/result.h"
#include "planner/base/utf8.h"
#include "src/base/float_mode.h"
#include "src/base/uncancelled.h"
#include "src/base/watch.h"
#include "src/data/dataset.h"
#include "src/device/device.h"
#include "src/trainer/planned.h"
#include "src/trainer/trainer.h"

struct stw_device {
  std::unique_ptr<stw::Device> device;
};
struct stw_watch {
  stw_watch(stw::Watch::Notify notify, std::chrono::milliseconds interval)
      : watch(std::move(notify), interval) {}
  stw::Watch watch;
};
struct stw_model {
  std::shared_ptr<const stw::Model> model;
  std::string config;  // config.json
};
struct stw_plan {
  std::shared_ptr<const stw::Planned> planned;
};
struct stw_dataset {
  stw::Dataset dataset;
  uint64_t seed;
  int64_t sequence;
  uint32_t tokenizer;
};
struct stw_trainer {
  std::unique_ptr<stw::Trainer> trainer;
  std::optional<stw::StepResult> last;
};

namespace stw::api {

void report(stw_error* error, Code code, const char* message, int32_t native = 0, uint64_t needed = 0,
            uint64_t available = 0);
stw_status fail(stw_error* error, const Error& e);
stw_status fail(stw_error* error, Code code, const char* message);

inline const Device& device_of(const stw_device& device) { return *device.device; }
inline const Device& device_of(const stw_trainer& trainer) { return trainer.trainer->device(); }

// The state of a thread inside an entry: our floating-point mode, no thread cancellation, and no outer long
// call (if a callback made this call), so that a cancel reaches this call only.
class Entry {
  const FloatMode mode_;
  const Uncancelled thread_;
  const Unsupervised call_;
};

// Runs the body of an entry and turns exceptions (in practice only std::bad_alloc) into a status, without
// allocating.
template <class Body>
stw_status guard(stw_error* error, const Body& body) {
  const Entry entry;
  try {
    report(error, Code::ok, "");
    return body();
  } catch (const Cancelled& cancelled) {
    return fail(error, Code::cancelled, cancelled.message);
#ifdef __GLIBCXX__
  } catch (abi::__forced_unwind&) {  // a callback ended its thread: glibc requires that unwinding continues
    throw;
#endif
  } catch (const std::bad_alloc&) {
    return fail(error, Code::host_out_of_memory, "no host memory");
  } catch (const std::exception& e) { return fail(error, Code::internal, e.what()); } catch (...) {
    return fail(error, Code::internal, "unknown exception");
  }
}

// A child after fork() lacks the device's threads, and could wait for them forever.
inline bool is_inherited(const Device& device) { return !device.is_of_this_process(); }

// The same for an entry that uses a device or a trainer. The body refuses null handles.
template <class Handle, class Body>
stw_status guard(const Handle* handle, stw_error* error, const Body& body) {
  return guard(error, [&]() -> stw_status {
    if (handle && is_inherited(device_of(*handle)))
      return fail(error, Code::bad_state,
                  "the device was opened before fork(), and belongs to the parent process; open another one "
                  "in the child");
    return body();
  });
}

// Copies an options struct of any known or future size. Null gives all defaults where `nullable`.
template <class T>
Status read_options(const T* options, T& out, const char* name, bool nullable = true) {
  std::memset(&out, 0, sizeof out);
  out.struct_size = sizeof out;
  if (!options) return nullable ? ok() : Status(Error{Code::bad_argument, std::string(name) + " is NULL"});
  const size_t size = options->struct_size;
  // A struct that ends inside a field could hold half a pointer.
  if (size < sizeof(uint32_t) || (size < sizeof out && size % alignof(T) != 0))
    return Error{Code::bad_struct_size, std::string(name) + ".struct_size is " + std::to_string(size)};
  std::memcpy(&out, options, std::min(size, sizeof out));
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(options);
  for (size_t i = sizeof out; i < size; ++i)
    if (bytes[i] != 0)
      return Error{Code::bad_struct_size, std::string(name) + " has fields that this library does not know"};
  return ok();
}

// Refuses bits that this library does not know, which would be ignored silently.
inline Status check_mask(uint32_t mask, uint32_t known, const char* name) {
  if ((mask & ~known) == 0) return ok();
  return Error{Code::bad_argument, std::string(name) + ".set_mask has bits that this library does not know"};
}

// The caller's value, if set: a value other than zero, or any value whose bit is in the mask.
template <class T>
std::optional<T> value_if_set(uint32_t mask, uint32_t bit, T value) {
  return (mask & bit) != 0 || value != T{} ? std::optional<T>(value) : std::nullopt;
}

// Must be 0: later libraries may give the field a meaning.
inline Status check_reserved(uint32_t reserved, const char* name) {
  return reserved == 0 ? ok() : Status(Error{Code::bad_argument, std::string(name) + ".reserved must be 0"});
}

// Writes as much of a result as the caller's struct holds, and zeros after it.
template <class T>
stw_status write_info(const T& info, T* out) {
  if (!out || out->struct_size < sizeof(uint32_t)) return STW_BAD_STRUCT_SIZE;
  const uint32_t size = out->struct_size;
  std::memcpy(out, &info, std::min<size_t>(size, sizeof info));
  if (size > sizeof info) std::memset(reinterpret_cast<char*>(out) + sizeof info, 0, size - sizeof info);
  out->struct_size = size;
  return STW_OK;
}

template <size_t n>
void copy_text(char (&to)[n], const std::string& from) {
  const size_t length = utf8_fitting(from, n - 1);
  std::memcpy(to, from.data(), length);
  to[length] = 0;
}

// The error for a plan that does not fit.
inline Error over_budget(const Plan& plan) {
  Error e{Code::over_budget, "does not fit: the budget is " + std::to_string(plan.bytes.budget) +
                                 " bytes, the smallest budget that works is " +
                                 std::to_string(plan.minimum_bytes)};
  e.bytes_needed = plan.minimum_bytes;
  e.bytes_available = plan.bytes.budget;
  return e;
}

inline uint32_t precision_of(Precision p) {
  constexpr uint32_t names[precision_count] = {STW_PRECISION_FP32, STW_PRECISION_BF16, STW_PRECISION_FP16};
  return names[static_cast<size_t>(p)];
}

// The caller's seed, or 1337. A seed of 0 counts only if its bit is in the mask.
inline uint64_t seed_or_default(uint32_t mask, uint32_t bit, uint64_t seed) {
  return value_if_set(mask, bit, seed).value_or(1337);
}

inline Watch* watch_of(stw_watch* watch) { return watch ? &watch->watch : nullptr; }

}  // namespace stw::api

// Returns the status of a failed Status or Result from a guarded body, which must have an `error`.
#define STW_API_TRY(expression)                                                \
  do {                                                                         \
    auto&& stw_api_status = (expression);                                      \
    if (!stw_api_status) return stw::api::fail(error, stw_api_status.error()); \
  } while (0)
