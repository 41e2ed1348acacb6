// Fuzzes tables: records that are read are written, and read again alike; of lifetimes too, which are then packed as `stowage pack` does.
#include "csv.h"

#include "failure.h"
#include "input.h"
#include "lifetimes.h"

using namespace command;

namespace {

using Records = std::vector<std::vector<std::string>>;

Records records_of(std::string_view text) {
  Records all;
  CsvReader csv(text, "table");
  for (int line = 0; auto record = csv.record();) {
    fuzz::require(csv.line() > line, "lines are told in order");
    line = csv.line();
    all.push_back(std::move(*record));
  }
  return all;
}

void pack(std::string_view text) {
  const LifetimeTable table = parse_lifetimes(text, "table");
  const auto& buffers = table.lifetimes;
  stw_pack_options options{};
  options.struct_size = sizeof options;
  options.node_limit = 1000;
  stw_pack_result result{};
  result.struct_size = sizeof result;
  std::vector<uint64_t> offsets(buffers.size());
  if (stw_pack(offsets.data(), buffers.data(), buffers.size(), &options, &result, nullptr) != STW_OK) return;
  fuzz::require(result.height >= result.bound, "nothing is packed below its bound");
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto& a = buffers[i];
    if (a.lower == a.upper) continue;   // takes no space
    fuzz::require(a.size <= result.height && offsets[i] <= result.height - a.size, "a buffer ends below the height");
    for (size_t k = 0; k < i; ++k) {
      const auto& b = buffers[k];
      const bool together = b.lower < b.upper && a.lower < b.upper && b.lower < a.upper && a.size > 0 && b.size > 0;
      fuzz::require(!together || offsets[i] + a.size <= offsets[k] || offsets[k] + b.size <= offsets[i], "buffers that are alive together lie apart");
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
  } catch (const Failure&) {
  }
  try {
    pack(text);
  } catch (const Failure&) {
  }
  return 0;
}
