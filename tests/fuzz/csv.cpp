// Fuzzes tables. Records are written and read again with the same result. Tables of lifetimes are also packed
// as `stowage pack` does, and the placement is checked at every moment.
#include "base/csv.h"

#include "base/failure.h"
#include "input.h"
#include "plans/lifetimes.h"

using namespace command;

namespace {

using Records = std::vector<std::vector<std::string>>;

Records records_of(std::string_view text) {
  Records all;
  CsvReader csv(text, "table");
  for (int line = 0; auto record = csv.record();) {
    fuzz::require(csv.line() > line, "line numbers increase");
    line = csv.line();
    all.push_back(std::move(*record));
  }
  return all;
}

// The address range [first, end) that a buffer occupies at a moment.
struct Taken {
  uint64_t first, end;
};

Taken taken_at(const stw_buffer_lifetime& life, const stw_buffer_constraint& constraint, uint64_t offset,
               int64_t moment) {
  if (moment < life.lower || moment >= life.upper) return {};
  for (uint32_t g = 0; g < constraint.gap_count; ++g)
    if (const stw_buffer_gap& gap = constraint.gaps[g]; gap.lower <= moment && moment < gap.upper)
      return {offset + gap.first, offset + gap.end};
  return {offset, offset + life.size};
}

void pack(std::string_view text) {
  const LifetimeTable table = parse_lifetimes(text, "table");
  const auto& buffers = table.lifetimes;
  stw_pack_options options{};
  options.struct_size = sizeof options;
  options.node_limit = 1000;
  options.constraints = table.constraints.data();
  stw_pack_result result{};
  result.struct_size = sizeof result;
  std::vector<uint64_t> offsets(buffers.size());
  if (stw_pack(offsets.data(), buffers.data(), buffers.size(), &options, &result, nullptr) != STW_OK) return;
  fuzz::require(result.height >= result.bound, "nothing is packed below its bound");
  std::vector<int64_t> moments;  // moments at which the set of live buffers changes
  for (size_t i = 0; i < buffers.size(); ++i) {
    moments.push_back(buffers[i].lower);
    for (const stw_buffer_gap& gap : table.gaps[i])
      for (const int64_t moment : {gap.lower, gap.upper}) moments.push_back(moment);
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const stw_buffer_constraint& rule = table.constraints[i];
    if (rule.set_mask) fuzz::require(offsets[i] == rule.offset, "a given offset is held");
    for (const int64_t moment : moments) {
      const Taken a = taken_at(buffers[i], rule, offsets[i], moment);
      if (a.first >= a.end) continue;
      fuzz::require(offsets[i] + buffers[i].size <= result.height, "a buffer ends below the height");
      fuzz::require(rule.alignment < 2 || offsets[i] % rule.alignment == 0, "offsets are aligned");
      for (size_t k = 0; k < i; ++k) {
        const Taken b = taken_at(buffers[k], table.constraints[k], offsets[k], moment);
        fuzz::require(b.first >= b.end || a.end <= b.first || b.end <= a.first,
                      "buffers that are alive together lie apart");
      }
    }
  }
  const LifetimeTable placed = parse_lifetimes(with_offsets(table, offsets), "placed");
  fuzz::require(placed.lifetimes.size() == buffers.size(), "a placed table is read again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Records all = records_of(text);
    std::string written;
    for (const auto& record : all) written += csv_line(record);
    fuzz::require(records_of(written) == all, "records that are written are read alike");
  } catch (const Failure&) {}
  try {
    pack(text);
  } catch (const Failure&) {}
  return 0;
}
