#include "src/api/boundary.h"

#include <cstdio>

#include "src/device/device.h"

namespace stw::api {

namespace {

// Copies one line of valid UTF-8, whatever paths and files contain: control characters become spaces, and
// invalid bytes are replaced.
void copy_line(char* to, size_t room, std::string_view from) {
  size_t used = 0;
  while (!from.empty()) {
    const size_t length = utf8_length(from);
    // C1 control characters
    const bool is_second_set = length == 2 && from[0] == '\xC2' && static_cast<unsigned char>(from[1]) < 0xA0;
    const bool is_control = static_cast<unsigned char>(from[0]) < 0x20 || from[0] == 0x7f || is_second_set;
    const std::string_view piece = length == 0  ? replacement_character
                                   : is_control ? " "
                                                : from.substr(0, length);
    if (piece.size() >= room - used) break;
    std::memcpy(to + used, piece.data(), piece.size());
    used += piece.size();
    from.remove_prefix(std::max<size_t>(length, 1));
  }
  to[used] = 0;
}

}  // namespace

static_assert(static_cast<int32_t>(Code::bad_struct_size) == STW_BAD_STRUCT_SIZE);
static_assert(static_cast<int32_t>(Code::bad_state) == STW_BAD_STATE);
static_assert(static_cast<int32_t>(Code::unsupported_shape) == STW_UNSUPPORTED_SHAPE);
static_assert(static_cast<int32_t>(Code::host_out_of_memory) == STW_HOST_OUT_OF_MEMORY);
static_assert(static_cast<int32_t>(Code::over_budget) == STW_OVER_BUDGET);
static_assert(static_cast<int32_t>(Code::device_lost) == STW_DEVICE_LOST);
static_assert(static_cast<int32_t>(Code::corrupt) == STW_CORRUPT);
static_assert(static_cast<int32_t>(Code::callback_failed) == STW_CALLBACK_FAILED);
static_assert(static_cast<int32_t>(Code::non_finite) == STW_NON_FINITE);
static_assert(static_cast<int32_t>(Code::internal) == STW_INTERNAL);

void report(stw_error* error, Code code, const char* message, int32_t native, uint64_t needed,
            uint64_t available) {
  if (!error || error->struct_size < offsetof(stw_error, message) + 1) return;
  const uint32_t size = error->struct_size;
  error->status = static_cast<stw_status>(code);
  error->native_code = native;
  error->reserved = 0;
  error->bytes_needed = needed;
  error->bytes_available = available;
  const size_t room = std::min<size_t>(size, sizeof *error) - offsetof(stw_error, message);
  copy_line(error->message, room, message);
  if (size > sizeof *error)
    std::memset(reinterpret_cast<char*>(error) + sizeof *error, 0, size - sizeof *error);
}

stw_status fail(stw_error* error, const Error& e) {
  report(error, e.code, e.message.c_str(), e.native, e.bytes_needed, e.bytes_available);
  return static_cast<stw_status>(e.code);
}

stw_status fail(stw_error* error, Code code, const char* message) {
  report(error, code, message);
  return static_cast<stw_status>(code);
}

}  // namespace stw::api

extern "C" {

uint32_t stw_version(void) STW_NOEXCEPT {
  return STW_VERSION_MAJOR * 10000 + STW_VERSION_MINOR * 100 + STW_VERSION_PATCH;
}

#if defined(__clang__)
#define STW_COMPILER "clang " __clang_version__
#else
#define STW_COMPILER "gcc " __VERSION__
#endif
#if defined(__x86_64__)
#define STW_ISAS "AVX-512, AVX2, scalar"
#elif defined(__aarch64__)
#define STW_ISAS "NEON, scalar"
#else
#define STW_ISAS "scalar"
#endif

// Valid as long as the thread lives. The text may change when a driver is loaded.
const char* stw_build_info(void) STW_NOEXCEPT {
  const stw::api::Entry entry;  // the query calls drivers
  thread_local char text[256];
  std::snprintf(text, sizeof text, "stowage 0.1.0; %s; CPU: %s; CUDA: %s", STW_COMPILER, STW_ISAS,
                stw::cuda_presence().text.c_str());
  return text;
}

const char* stw_status_name(stw_status status) STW_NOEXCEPT {
  switch (status) {
#define STW_NAME(code) \
  case code: return #code;
    STW_NAME(STW_OK)
    STW_NAME(STW_BAD_ARGUMENT)
    STW_NAME(STW_BAD_STRUCT_SIZE)
    STW_NAME(STW_BAD_STATE)
    STW_NAME(STW_UNSUPPORTED)
    STW_NAME(STW_UNSUPPORTED_FIELD)
    STW_NAME(STW_UNSUPPORTED_SHAPE)
    STW_NAME(STW_OUT_OF_MEMORY)
    STW_NAME(STW_OVER_BUDGET)
    STW_NAME(STW_HOST_OUT_OF_MEMORY)
    STW_NAME(STW_DEVICE_ERROR)
    STW_NAME(STW_DEVICE_LOST)
    STW_NAME(STW_IO_ERROR)
    STW_NAME(STW_CORRUPT)
    STW_NAME(STW_CANCELLED)
    STW_NAME(STW_CALLBACK_FAILED)
    STW_NAME(STW_NUMERIC)
    STW_NAME(STW_NON_FINITE)
    STW_NAME(STW_INTERNAL)
#undef STW_NAME
    default: return "STW_UNKNOWN";
  }
}

}  // extern "C"
