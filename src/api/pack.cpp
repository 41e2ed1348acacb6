#include <algorithm>

#include "planner/pack/constraints.h"

#include "kernels/contract/sizes.h"
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
      return Error{Code::bad_argument, "pack: lifetimes[" + std::to_string(i) + "].upper is " +
                                           std::to_string(upper) + ", below its lower, " +
                                           std::to_string(lower)};
    intervals.push_back({lower, upper, size});
  }
  return intervals;
}

Error bad(size_t buffer, const std::string& what) {
  return {Code::bad_argument, "pack: lifetimes[" + std::to_string(buffer) + "]" + what};
}

// `buffer`: the number of the constraint's buffer.
Result<std::vector<Gap>> gaps_of(const stw_buffer_constraint& constraint, const Interval& interval,
                                 size_t buffer) {
  if (constraint.gap_count > 0 && !constraint.gaps) return bad(buffer, ": its gaps are NULL");
  std::vector<Gap> gaps;
  for (uint32_t g = 0; g < constraint.gap_count; ++g) {
    const auto& [lower, upper, first, end] = constraint.gaps[g];
    const std::string name = ": its gap " + std::to_string(lower) + " to " + std::to_string(upper);
    if (upper < lower) return bad(buffer, name + " ends before it begins");
    if (lower < interval.lower || upper > interval.upper)
      return bad(buffer, name + " lies outside of its lifetime, " + std::to_string(interval.lower) + " to " +
                             std::to_string(interval.upper));
    if (end < first || end > interval.size)
      return bad(buffer, name + " takes the bytes " + std::to_string(first) + " to " + std::to_string(end) +
                             ", outside of its " + std::to_string(interval.size));
    if (lower < upper) gaps.push_back({lower, upper, first, end});
  }
  std::sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.lower < b.lower; });
  for (size_t g = 1; g < gaps.size(); ++g)
    if (gaps[g].lower < gaps[g - 1].upper)
      return bad(buffer, ": its gaps from " + std::to_string(gaps[g - 1].lower) + " and from " +
                             std::to_string(gaps[g].lower) + " overlap");
  return gaps;
}

Result<std::vector<Constraint>> constraints_of(const stw_buffer_constraint* given,
                                               const std::vector<Interval>& intervals) {
  std::vector<Constraint> constraints(intervals.size());
  if (!given) return constraints;
  for (size_t i = 0; i < intervals.size(); ++i) {
    STW_TRY(api::check_mask(given[i].set_mask, STW_SET_OFFSET, "pack constraints"));
    Constraint& c = constraints[i];
    if (given[i].alignment > 1) c.alignment = given[i].alignment;
    if ((given[i].set_mask & STW_SET_OFFSET) != 0) c.offset = given[i].offset;
    if (c.offset.value_or(0) >= size_limit)
      return Error{Code::bad_argument, "pack: 2^62 bytes or more are needed"};
    auto gaps = gaps_of(given[i], intervals[i], i);
    if (!gaps) return gaps.error();
    c.gaps = std::move(*gaps);
  }
  if (const auto pair = contradiction(intervals, constraints)) {
    const auto& [a, b] = *pair;
    if (a == b)
      return bad(a, ": its given offset, " + std::to_string(*constraints[a].offset) +
                        ", is no multiple of its alignment, " + std::to_string(constraints[a].alignment));
    return bad(a, ": its given offset, " + std::to_string(*constraints[a].offset) +
                      ", and that of lifetimes[" + std::to_string(b) + "], " +
                      std::to_string(*constraints[b].offset) + ", make both overlap");
  }
  return constraints;
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
  const std::string what =
      proven ? "proven impossible: no placement"
             : "not found within " + std::to_string(packing.nodes) + " decisions: a placement";
  Error e{Code::over_budget, what + " in " + std::to_string(capacity) + " bytes; the lowest found takes " +
                                 std::to_string(packing.height) + ", and none takes less than " +
                                 std::to_string(packing.bound)};
  e.bytes_needed = packing.height;
  e.bytes_available = capacity;
  return e;
}

}  // namespace

extern "C" stw_status stw_pack(uint64_t* offsets, const stw_buffer_lifetime* lifetimes, size_t count,
                               const stw_pack_options* options, stw_pack_result* result,
                               stw_error* error) STW_NOEXCEPT {
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
    auto constraints = constraints_of(o.constraints, *intervals);
    STW_API_TRY(constraints);
    const Packing packing = pack_constrained(*intervals, *constraints,
                                             {o.capacity, o.node_limit ? o.node_limit : default_node_limit});
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
