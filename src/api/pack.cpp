#include "planner/pack/pack.h"

#include "planner/sizes.h"
#include "src/api/boundary.h"

using namespace stw;

namespace {

constexpr uint64_t default_node_limit = 1'000'000;
constexpr size_t most_buffers = size_t{1} << 30;

Result<std::vector<Interval>> intervals_of(const stw_buffer_lifetime* lifetimes, size_t count) {
  if (count > most_buffers)
    return Error{Code::bad_argument, "pack: expected at most 2^30 buffers, found " + std::to_string(count)};
  std::vector<Interval> intervals;
  intervals.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const auto& [lower, upper, size] = lifetimes[i];
    if (upper < lower)
      return Error{Code::bad_argument, "pack: lifetimes[" + std::to_string(i) + "].upper is " + std::to_string(upper) +
                                           ", below its lower, " + std::to_string(lower)};
    intervals.push_back({lower, upper, size});
  }
  return intervals;
}

uint32_t answer_of(PackStatus status) {
  switch (status) {
    case PackStatus::optimal: return STW_PACK_OPTIMAL;
    case PackStatus::fits: return STW_PACK_FITS;
    case PackStatus::infeasible: return STW_PACK_IMPOSSIBLE;
    case PackStatus::unknown: break;
  }
  return STW_PACK_UNKNOWN;
}

Error over_capacity(const Packing& packing, uint64_t capacity) {
  const bool proven = packing.status == PackStatus::infeasible;
  const std::string what = proven ? "proven impossible: no placement"
                                  : "not found within " + std::to_string(packing.nodes) + " decisions: a placement";
  Error e{Code::over_budget,
          what + " in " + std::to_string(capacity) + " bytes; the lowest found takes " + std::to_string(packing.height) +
              ", and none takes less than " + std::to_string(packing.bound)};
  e.bytes_needed = packing.height;
  e.bytes_available = capacity;
  return e;
}

}  // namespace

extern "C" stw_status stw_pack(uint64_t* offsets, const stw_buffer_lifetime* lifetimes, size_t count,
                               const stw_pack_options* options, stw_pack_result* result, stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (count > 0 && (!offsets || !lifetimes))
      return api::fail(error, Code::bad_argument, "pack: offsets or lifetimes is NULL");
    stw_pack_options o;
    STW_API_TRY(api::read_options(options, o, "pack options"));
    STW_API_TRY(api::check_mask(o.set_mask, 0, "pack options"));
    if (result && result->struct_size < sizeof(uint32_t))
      return api::fail(error, Code::bad_struct_size, "pack result: struct_size is too small");
    auto intervals = intervals_of(lifetimes, count);
    STW_API_TRY(intervals);
    const Packing packing = pack(*intervals, {o.capacity, o.node_limit ? o.node_limit : default_node_limit});
    if (packing.height >= size_limit)
      return api::fail(error, Code::bad_argument, "pack: 2^62 bytes or more are needed");
    if (result) {
      stw_pack_result info{};
      info.answer = answer_of(packing.status);
      info.height = packing.height;
      info.bound = packing.bound;
      info.nodes = packing.nodes;
      api::write_info(info, result);
    }
    if (packing.status == PackStatus::infeasible || packing.status == PackStatus::unknown)
      return api::fail(error, over_capacity(packing, o.capacity));
    std::copy(packing.offsets.begin(), packing.offsets.end(), offsets);
    return STW_OK;
  });
}
