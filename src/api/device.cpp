#include "src/api/boundary.h"

#include <algorithm>

#include "planner/device/device.h"

using namespace stw;

namespace {

constexpr Backend backends[] = {Backend::automatic, Backend::cpu, Backend::cuda};
static_assert(STW_BACKEND_AUTO == 0 && STW_BACKEND_CPU == 1 && STW_BACKEND_CUDA == 2);
static_assert(STW_LOG_WARNING == log_warning);
constexpr uint32_t isa_codes[] = {STW_ISA_SCALAR, STW_ISA_AVX2, STW_ISA_AVX512, STW_ISA_NEON};

stw_device_info info_of(const DeviceInfo& d) {
  stw_device_info info{};
  info.struct_size = sizeof info;
  info.backend = d.backend == Backend::cuda ? STW_BACKEND_CUDA : STW_BACKEND_CPU;
  info.memory_total = d.memory_total;
  info.threads = static_cast<uint32_t>(d.threads);
  info.compute_major = d.compute_major;
  info.compute_minor = d.compute_minor;
  if (d.backend == Backend::cpu) info.isa = isa_codes[static_cast<size_t>(d.isa)];
  api::copy_text(info.name, d.name);
  api::copy_text(info.profile, d.backend == Backend::cpu
                                   ? "cpu"
                                   : profile_for(d.name, d.compute_major, d.compute_minor).name);
  return info;
}

}  // namespace

extern "C" {

stw_status stw_device_at(size_t index, stw_device_info* out, stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (!out) return api::fail(error, Code::bad_argument, "out is NULL");
    if (index > static_cast<size_t>(cuda_device_count()))
      return api::fail(error, Code::bad_argument, "there is no device with this index");
    DeviceOptions options;
    if (index > 0) {
      options.backend = Backend::cuda;
      options.ordinal = static_cast<int>(index) - 1;
    }
    auto device = Device::open(options);
    STW_API_TRY(device);
    stw_device_info info = info_of((*device)->info());
    // A GPU reports its free memory only once it is open.
    if (!(*device)->is_cuda()) info.memory_free = (*device)->memory_free().bytes;
    const stw_status status = api::write_info(info, out);
    return status == STW_OK ? status
                            : api::fail(error, Code::bad_struct_size, "out.struct_size is too small");
  });
}

stw_status stw_device_open(stw_device** out, const stw_device_options* options,
                           stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (!out) return api::fail(error, Code::bad_argument, "out is NULL");
    *out = nullptr;
    stw_device_options o;
    STW_API_TRY(api::read_options(options, o, "device options"));
    if (o.backend > STW_BACKEND_CUDA) return api::fail(error, Code::bad_argument, "device: unknown backend");
    if (o.isa > STW_ISA_NEON) return api::fail(error, Code::bad_argument, "device: unknown instruction set");
    if (o.threads > static_cast<uint32_t>(ThreadPool::max_threads))
      return api::fail(error, Code::bad_argument, "device: expected at most 1024 threads");
    DeviceOptions d;
    d.backend = backends[o.backend];
    d.ordinal = o.ordinal;
    d.stream = o.stream;
    if (o.cublaslt) d.cublaslt = o.cublaslt;
    if (o.cudnn) d.cudnn = o.cudnn;
    d.threads = static_cast<int>(o.threads);
    d.choose_isa = o.isa == STW_ISA_AUTO;
    for (size_t i = 0; i < std::size(isa_codes); ++i)
      if (isa_codes[i] == o.isa) d.isa = static_cast<kernels::Isa>(i);
    d.log = o.log;
    d.log_user = o.log_user;
    d.log_level = o.log_level == 0 ? log_warning : o.log_level;
    d.allocate = o.allocate;
    d.release = o.release;
    d.memory_user = o.memory_user;
    d.run = o.run;
    d.run_user = o.run_user;
    auto device = Device::open(d);
    STW_API_TRY(device);
    *out = new stw_device{std::move(*device)};
    return STW_OK;
  });
}

void stw_device_close(stw_device* device) STW_NOEXCEPT {
  const api::Entry entry;
  if (device && !api::is_inherited(*device->device)) delete device;
}

stw_status stw_device_query(const stw_device* device, stw_device_info* out) STW_NOEXCEPT {
  return api::guard(device, nullptr, [&]() -> stw_status {
    if (!device || !out) return STW_BAD_ARGUMENT;
    stw_device_info info = info_of(device->device->info());
    const auto [free, failure] = device->device->memory_free();
    if (failure) {
      const Error error = device->device->error_of("the device's free memory", failure);
      device->device->log(STW_LOG_INFO, "device", error.message.c_str());
      return static_cast<stw_status>(error.code);
    }
    info.memory_free = free;
    // memory_outside() cannot tell a context from arenas and from memory that others took. The value is
    // therefore limited to three quarters of a plan's reserve. The rest of the reserve is for kernels and
    // graphs, which are loaded later. Without this limit a large context could let an arena take all free
    // memory.
    if (const DeviceProfile* profile = find_device(info.profile))
      info.memory_reserved = std::min(device->device->memory_outside(0), profile->reserve_bytes / 4 * 3);
    return api::write_info(info, out);
  });
}

stw_status stw_device_holder_at(const stw_device* device, size_t index, stw_memory_holder* out) STW_NOEXCEPT {
  return api::guard(device, nullptr, [&]() -> stw_status {
    if (!device || !out) return STW_BAD_ARGUMENT;
    const std::vector<MemoryHolder> holders = device->device->memory_holders();
    if (index >= holders.size()) return STW_BAD_ARGUMENT;
    stw_memory_holder h{};
    h.process = holders[index].process;
    h.bytes = holders[index].bytes;
    api::copy_text(h.name, holders[index].name);
    return api::write_info(h, out);
  });
}

stw_status stw_device_next_log(const stw_device* device, uint64_t after, stw_log_message* out) STW_NOEXCEPT {
  return api::guard(device, nullptr, [&]() -> stw_status {
    if (!device || !out) return STW_BAD_ARGUMENT;
    const LogMessage message = device->device->next_log(after);
    stw_log_message m{};
    m.level = message.level;
    m.number = message.number;
    static_assert(sizeof m.component == sizeof message.component && sizeof m.text == sizeof message.text);
    std::memcpy(m.component, message.component, sizeof m.component);
    std::memcpy(m.text, message.text, sizeof m.text);
    return api::write_info(m, out);
  });
}

}  // extern "C"
