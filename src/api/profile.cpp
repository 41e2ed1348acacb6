#include "src/api/boundary.h"

#include "planner/device/profile_file.h"

using namespace stw;

namespace {

stw_profile_info info_of(const DeviceProfile& p) {
  stw_profile_info info{};
  info.is_cuda = p.cuda;
  info.memory = p.memory_bytes;
  info.reserve = p.reserve_bytes;
  info.gflops_fp32 = p.gflops_fp32;
  info.gflops_bf16 = p.gflops_bf16;
  info.gbytes_per_second = p.gbytes_per_second;
  info.host_gbytes_per_second = p.host_gbytes_per_second;
  info.product_permille = p.product_permille;
  info.stream_permille = p.stream_permille;
  info.launch_nanoseconds = p.launch_nanoseconds;
  info.name = p.name;
  info.title = p.title;
  info.source = p.source;
  info.mma_permille = p.mma_permille;
  info.watts = p.watts;
  info.gflops_per_watt = p.gflops_per_watt;
  info.wgmma_permille = p.wgmma_permille;
  info.attention_permille = p.attention_permille;
  info.wide_attention_permille = p.wide_attention_permille;
  info.fp32_permille = p.fp32_permille;
  const Calibration& c = p.calibration;
  info.threads = static_cast<uint32_t>(c.threads);
  info.precision = c.threads == 0 ? uint32_t{STW_PRECISION_DEFAULT} : api::precision_of(c.precision);
  info.step_nanoseconds = c.step_nanoseconds;
  info.kernels = c.threads == 0 ? uint32_t{STW_KERNELS_AUTO} : static_cast<uint32_t>(c.kernels) + 1;
  return info;
}

}  // namespace

extern "C" {

stw_status stw_profile_at(size_t index, stw_profile_info* out) STW_NOEXCEPT {
  if (!out || index >= device_profiles().size()) return STW_BAD_ARGUMENT;
  return api::write_info(info_of(device_profiles()[index]), out);
}

stw_status stw_profile_read(const char* profile, size_t profile_size, stw_profile_info* out,
                            stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (!profile || !out) return api::fail(error, Code::bad_argument, "profile or out is NULL");
    auto read = profile_from_json({profile, profile_size});
    STW_API_TRY(read);
    const stw_status status = api::write_info(info_of(*read), out);
    return status == STW_OK ? status
                            : api::fail(error, Code::bad_struct_size, "out.struct_size is too small");
  });
}

stw_status stw_profile_op_at(const char* profile, size_t profile_size, size_t index,
                             stw_profile_op_info* out) STW_NOEXCEPT {
  return api::guard(nullptr, [&]() -> stw_status {
    if (!profile || !out) return STW_BAD_ARGUMENT;
    auto read = profile_from_json({profile, profile_size});
    if (!read) return static_cast<stw_status>(read.error().code);
    for (size_t kind = 0; kind < op_kind_count; ++kind) {
      const Calibration::Op& op = read->calibration.ops[kind];
      if (op.permille == 0 || index-- > 0) continue;
      return api::write_info(stw_profile_op_info{0, op.permille, op.launch_nanoseconds, op.nanoseconds,
                                                 op_row(static_cast<OpKind>(kind)).name},
                             out);
    }
    return STW_BAD_ARGUMENT;
  });
}

}  // extern "C"
