#include "planner/device/profile_file.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "planner/device/calibration.h"

namespace stw {

namespace {

constexpr uint64_t largest_threads = 1024;
constexpr uint64_t largest_reserve = uint64_t{1} << 40;
constexpr uint64_t largest_figure = 1000000000;  // of speeds and watts
constexpr const char* from_a_file =
    "figures of a file, not measured by a calibration; memory and reserve are the embedded profile's";
constexpr const char* measured_there =
    "measured on the device by its calibration; peaks, memory and reserve are the embedded profile's";
constexpr const char* measured_with_reserve =
    "measured on the device by its calibration, the reserve too; peaks and memory are the embedded profile's";

Error no_profile(const std::string& what) { return {Code::corrupt, what}; }

// Names come from files, so line breaks in them are escaped.
std::string quoted(const std::string& name) { return to_string(Json(name), 0); }

// A whole number from 1 to `largest`.
Result<uint64_t> figure(const Json& object, std::string_view key, uint64_t largest,
                        const std::string& where = {}) {
  auto n = get_uint(object, key);
  if (!n) return no_profile(where + n.error().message);
  if (*n >= 1 && *n <= largest) return *n;
  return no_profile(where + "\"" + std::string(key) + "\": expected 1 to " + std::to_string(largest) +
                    ", found " + std::to_string(*n));
}

// The kind of op with this name, or -1.
int kind_of(std::string_view name) {
  for (int k = 0; k < op_kind_count; ++k)
    if (name == op_row(static_cast<OpKind>(k)).name) return k;
  return -1;
}

// Refuses a member that is not read: it may be a misspelled one.
Status check_members(const Json& body, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : body.members())
    if (std::find(known.begin(), known.end(), name) == known.end())
      return no_profile("there is no field " + quoted(name) + " in this version");
  return ok();
}

Status read_ops(const Json& ops, Calibration& c) {
  for (const auto& [name, value] : ops.members()) {
    const int kind = kind_of(name);
    if (kind < 0) return no_profile("there is no op " + quoted(name));
    if (!value.is_object())
      return no_profile(quoted(name) + ": expected an object, found " + std::string(kind_name(value.kind())));
    STW_ASSIGN(permille, figure(value, "permille", largest_permille, quoted(name) + ": "));
    STW_ASSIGN(launch, figure(value, "launch_nanoseconds", longest_launch_nanoseconds, quoted(name) + ": "));
    STW_ASSIGN(nanoseconds, figure(value, "nanoseconds", longest_nanoseconds, quoted(name) + ": "));
    c.ops[kind] = {static_cast<uint32_t>(permille), launch, nanoseconds};
  }
  return ok();
}

// Before files had this share, our mma.sync kernels were assumed to reach what the instructions do.
uint32_t old_mma_permille(std::string_view device) {
  return device == "h100" || device == "h200" ? 629 : device == "b200" ? 500 : 1000;
}

// Reads a share, which is at most 1000 permille, or another figure of 32 bits.
Status read_small(const Json& body, const char* key, uint32_t& out, uint64_t largest = 1000) {
  STW_ASSIGN(n, figure(body, key, largest));
  out = static_cast<uint32_t>(n);
  return ok();
}

// Version 2: figures of a card that was not calibrated. All of them must be there.
Result<DeviceProfile> read_figures(const Json& body, DeviceProfile p) {
  if (!p.cuda) return no_profile("version 2 describes GPUs; the device is " + quoted(p.name));
  STW_TRY(check_members(body, {"format", "version", "device", "gflops_fp32", "gflops_bf16", "watts",
                               "gflops_per_watt", "gbytes_per_second", "host_gbytes_per_second",
                               "launch_nanoseconds", "stream_permille", "mma_permille", "wgmma_permille",
                               "fp32_permille", "attention_permille", "wide_attention_permille"}));
  p.source = from_a_file;
  const std::pair<const char*, uint64_t*> figures[] = {{"gflops_fp32", &p.gflops_fp32},
                                                       {"gflops_bf16", &p.gflops_bf16},
                                                       {"watts", &p.watts},
                                                       {"gflops_per_watt", &p.gflops_per_watt},
                                                       {"gbytes_per_second", &p.gbytes_per_second},
                                                       {"host_gbytes_per_second", &p.host_gbytes_per_second}};
  for (const auto& [key, field] : figures) {
    STW_ASSIGN(n, figure(body, key, largest_figure));
    *field = n;
  }
  STW_ASSIGN(launch, figure(body, "launch_nanoseconds", longest_launch_nanoseconds));
  p.launch_nanoseconds = launch;
  p.product_permille = product_ceiling(p.gflops_bf16, p.watts, p.gflops_per_watt);
  uint32_t attention = 0, wide = 0;
  for (const auto& [key, share] : {std::pair{"stream_permille", &p.stream_permille},
                                   {"mma_permille", &p.mma_permille},
                                   {"wgmma_permille", &p.wgmma_permille},
                                   {"fp32_permille", &p.fp32_permille},
                                   {"attention_permille", &attention},
                                   {"wide_attention_permille", &wide}})
    STW_TRY(read_small(body, key, *share));
  p.attention_permille = std::max(1u, p.product_permille * attention / 1000);
  p.wide_attention_permille = std::max(1u, p.product_permille * wide / 1000);
  return p;
}

Result<DeviceProfile> read(const Json& body) {
  if (!body.is_object())
    return no_profile("expected an object, found " + std::string(kind_name(body.kind())));
  const Json* format = body.find("format");
  if (!format || !format->as_string() || *format->as_string() != "stowage-profile")
    return no_profile("expected \"format\": \"stowage-profile\"");
  STW_ASSIGN(version, get_int(body, "version"));
  if (version != 1 && version != 2)
    return no_profile("expected version 1 or 2, found " + std::to_string(version));
  STW_ASSIGN(name, get_string(body, "device"));
  const DeviceProfile* device = find_device(name);
  if (!device) return no_profile("there is no device " + quoted(name));
  DeviceProfile p = *device;
  if (version == 2) return read_figures(body, p);
  STW_TRY(check_members(body, {"format", "version", "device", "threads", "precision", "kernels",
                               "reserve_bytes", "launch_nanoseconds", "product_permille", "stream_permille",
                               "attention_permille", "wide_attention_permille", "fp32_permille",
                               "mma_permille", "wgmma_permille", "watts", "step_nanoseconds", "ops"}));
  Calibration& c = p.calibration;
  p.source = measured_there;
  STW_ASSIGN(threads, figure(body, "threads", largest_threads));
  c.threads = static_cast<int>(threads);
  STW_ASSIGN(precision, get_string(body, "precision"));
  const auto known = named<Precision>(precision_names, precision);
  if (!known) return no_profile("unknown precision " + quoted(precision));
  c.precision = *known;
  if (body.find("kernels")) {  // older profiles have none
    STW_ASSIGN(kernels, get_string(body, "kernels"));
    const auto which = named<Kernels>(kernels_names, kernels);
    if (!which) return no_profile("unknown kernels " + quoted(kernels));
    c.kernels = *which;
  }
  if (body.find("reserve_bytes")) {  // if it was measured
    STW_ASSIGN(reserve, figure(body, "reserve_bytes", largest_reserve));
    p.reserve_bytes = reserve;
    p.source = measured_with_reserve;
  }
  STW_ASSIGN(launch, figure(body, "launch_nanoseconds", longest_launch_nanoseconds));
  p.launch_nanoseconds = launch;
  STW_TRY(read_small(body, "product_permille", p.product_permille));
  STW_TRY(read_small(body, "stream_permille", p.stream_permille));
  // Older profiles lack these. Then attention and products in fp32 had the share of products (0 here), and
  // wgmma kernels were assumed to reach the whole peak.
  p.attention_permille = p.wide_attention_permille = p.fp32_permille = 0;
  p.wgmma_permille = 1000, p.mma_permille = old_mma_permille(name);
  for (const auto& [key, share] : {std::pair{"attention_permille", &p.attention_permille},
                                   {"wide_attention_permille", &p.wide_attention_permille},
                                   {"fp32_permille", &p.fp32_permille},
                                   {"mma_permille", &p.mma_permille},
                                   {"wgmma_permille", &p.wgmma_permille}})
    if (body.find(key)) { STW_TRY(read_small(body, key, *share)); }
  if (body.find("watts")) {
    STW_ASSIGN(watts, figure(body, "watts", largest_figure));
    p.watts = watts;
  }
  STW_ASSIGN(step, figure(body, "step_nanoseconds", longest_nanoseconds));
  c.step_nanoseconds = step;
  STW_ASSIGN(ops, get_object(body, "ops"));
  STW_TRY(read_ops(*ops, c));
  return p;
}

// The smallest share of the ceiling that gives this share of the peak.
uint64_t of_ceiling(uint32_t permille, const DeviceProfile& p) {
  return (uint64_t{permille} * 1000 + p.product_permille - 1) / p.product_permille;
}

Json figures_json(const DeviceProfile& p) {
  return Json::object()
      .set("format", "stowage-profile")
      .set("version", 2)
      .set("device", p.name)
      .set("gflops_fp32", p.gflops_fp32)
      .set("gflops_bf16", p.gflops_bf16)
      .set("watts", p.watts)
      .set("gflops_per_watt", p.gflops_per_watt)
      .set("gbytes_per_second", p.gbytes_per_second)
      .set("host_gbytes_per_second", p.host_gbytes_per_second)
      .set("launch_nanoseconds", p.launch_nanoseconds)
      .set("stream_permille", p.stream_permille)
      .set("mma_permille", p.mma_permille)
      .set("wgmma_permille", p.wgmma_permille)
      .set("fp32_permille", p.fp32_permille)
      .set("attention_permille", of_ceiling(p.attention_permille, p))
      .set("wide_attention_permille", of_ceiling(p.wide_attention_permille, p));
}

}  // namespace

Json profile_json(const DeviceProfile& p) {
  if (!p.is_calibrated()) return figures_json(p);
  const Calibration& c = p.calibration;
  Json ops = Json::object();
  for (size_t k = 0; k < op_kind_count; ++k)
    if (const Calibration::Op& op = c.ops[k]; op.permille > 0)
      ops.set(op_row(static_cast<OpKind>(k)).name, Json::object()
                                                       .set("permille", op.permille)
                                                       .set("launch_nanoseconds", op.launch_nanoseconds)
                                                       .set("nanoseconds", op.nanoseconds));
  Json profile = Json::object()
                     .set("format", "stowage-profile")
                     .set("version", 1)
                     .set("device", p.name)
                     .set("threads", c.threads)
                     .set("precision", name_of(c.precision))
                     .set("kernels", kernels_names[static_cast<size_t>(c.kernels)]);
  if (p.reserve_bytes != find_device(p.name)->reserve_bytes) profile.set("reserve_bytes", p.reserve_bytes);
  profile.set("launch_nanoseconds", p.launch_nanoseconds)
      .set("product_permille", p.product_permille)
      .set("stream_permille", p.stream_permille);
  if (p.attention_permille > 0) profile.set("attention_permille", p.attention_permille);
  if (p.wide_attention_permille > 0) profile.set("wide_attention_permille", p.wide_attention_permille);
  if (p.fp32_permille > 0) profile.set("fp32_permille", p.fp32_permille);
  if (p.mma_permille != old_mma_permille(p.name)) profile.set("mma_permille", p.mma_permille);
  if (p.wgmma_permille != 1000) profile.set("wgmma_permille", p.wgmma_permille);
  return profile.set("step_nanoseconds", c.step_nanoseconds).set("ops", std::move(ops));
}

std::string profile_to_json(const DeviceProfile& profile) {
  return to_string(profile_json(profile), 1) + "\n";
}

Result<DeviceProfile> profile_from(const Json& body) {
  auto profile = read(body);
  if (!profile) profile.error().message.insert(0, "profile: ");
  return profile;
}

Result<DeviceProfile> profile_from_json(std::string_view text) {
  auto json = parse_json(text);
  if (!json) return no_profile("profile: " + json.error().message);
  return profile_from(*json);
}

}  // namespace stw
