#include "plans/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/files.h"
#include "base/handles.h"
#include "flags/flags.h"

namespace command {

bool is_profile_file(const std::string& device) {
  return device.ends_with(".json") || device.find('/') != std::string::npos;
}

stw_profile_info read_profile(std::string_view text) {
  auto info = sized<stw_profile_info>();
  call([&](stw_error* error) { return stw_profile_read(text.data(), text.size(), &info, error); });
  return info;
}

void require_profile(const std::string& path, std::string_view text) {
  try {
    read_profile(text);
  } catch (const Failure& failure) {
    throw Failure(failure.exit_code, fmt::format("{}: {}", path, failure.what()));
  }
}

std::string read_profile_file(const std::string& path) {
  std::string text = read_text(path);
  require_profile(path, text);
  return text;
}

void print_profile(std::string_view text) {
  const stw_profile_info info = read_profile(text);
  if (info.threads == 0) {
    fmt::print("{}, not calibrated\n\n", info.title);
    fmt::print("  {:<24}{} GFLOP/s in fp32, {} in 16 bits, {} W\n", "rated", info.gflops_fp32,
               info.gflops_bf16, info.watts);
    fmt::print("  {:<24}{:.1f} % of the rated speed, by {} GFLOP/s per watt\n", "ceiling of products",
               info.product_permille / 10.0, info.gflops_per_watt);
    fmt::print("  {:<24}{:.1f} % of {} GB/s\n", "streams", info.stream_permille / 10.0,
               info.gbytes_per_second);
    return;
  }
  std::vector<stw_profile_op_info> ops;
  double whole = 0;
  for (auto op = sized<stw_profile_op_info>();
       stw_profile_op_at(text.data(), text.size(), ops.size(), &op) == STW_OK;) {
    ops.push_back(op);
    whole += static_cast<double>(op.nanoseconds);
  }
  std::stable_sort(ops.begin(), ops.end(),
                   [](const auto& a, const auto& b) { return a.nanoseconds > b.nanoseconds; });
  fmt::print("{} with {} thread{}, {}\n\n", info.title, info.threads, info.threads == 1 ? "" : "s",
             precision_name(info.precision));
  fmt::print("  {:<24}{:>12}{:>12}{:>14}{:>12}\n", "op", "of the peak", "launch, µs", "of the step", "ms");
  for (const stw_profile_op_info& op : ops)
    fmt::print("  {:<24}{:>10.1f} %{:>12.2f}{:>12.1f} %{:>12.3f}\n", op.name, op.permille / 10.0,
               static_cast<double>(op.launch_nanoseconds) * 1e-3,
               100 * static_cast<double>(op.nanoseconds) / whole, static_cast<double>(op.nanoseconds) * 1e-6);
  fmt::print("\n  {:<24}{:>10.1f} %{:>12.2f}   products: {:.1f} %\n", "others, streams",
             info.stream_permille / 10.0, static_cast<double>(info.launch_nanoseconds) * 1e-3,
             info.product_permille / 10.0);
}

}  // namespace command
