// Errors are values. A `Result<T>` holds a T or an Error; `Status` is a Result without a value.
//
// Codes have the numbers of the C API's codes (include/stowage.h). They are repeated here because the planner
// builds without the C API and does not include its header. src/api/library.cpp does not compile if a number
// differs.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace stw {

enum class Code : int32_t {
  ok = 0,
  bad_argument = 1000,
  bad_struct_size = 1001,
  bad_state = 1002,
  unsupported = 2000,
  unsupported_field = 2001,
  unsupported_shape = 2002,
  out_of_memory = 3000,
  over_budget = 3001,
  host_out_of_memory = 3002,
  device_error = 4000,
  device_lost = 4001,
  io_error = 5000,
  corrupt = 5001,
  cancelled = 6000,
  callback_failed = 6001,
  numeric = 7000,
  non_finite = 7001,
  internal = 9000,
};

struct Error {
  Code code = Code::internal;
  std::string message;        // one line: what was expected, what was found, in which file
  int32_t native = 0;         // errno, cudaError_t
  uint64_t bytes_needed = 0;  // memory errors
  uint64_t bytes_available = 0;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return *std::get_if<0>(&state_); }
  const T& operator*() const { return *std::get_if<0>(&state_); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  Error& error() { return *std::get_if<1>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

struct Unit {};
using Status = Result<Unit>;
inline Status ok() { return Unit{}; }

// STW_TRY(expression): returns the error of a Status from the enclosing function.
// STW_ASSIGN(name, expression): declares `name` as the value of a Result, or returns its error.
#define STW_TRY(expression)                                \
  do {                                                     \
    auto stw_status = (expression);                        \
    if (!stw_status) return std::move(stw_status.error()); \
  } while (0)
#define STW_ASSIGN(name, expression)                           \
  auto name##_result = (expression);                           \
  if (!name##_result) return std::move(name##_result.error()); \
  auto& name = *name##_result

}  // namespace stw
