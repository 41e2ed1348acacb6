#include "planner/device/profile_file.h"

#include "planner/device/calibration.h"

namespace stw {

namespace {

constexpr uint64_t largest_threads = 1024;
constexpr uint64_t largest_reserve = uint64_t{1} << 40;
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

Result<DeviceProfile> read(const Json& body) {
  if (!body.is_object())
    return no_profile("expected an object, found " + std::string(kind_name(body.kind())));
  const Json* format = body.find("format");
  if (!format || !format->as_string() || *format->as_string() != "stowage-profile")
    return no_profile("expected \"format\": \"stowage-profile\"");
  STW_ASSIGN(version, get_int(body, "version"));
  if (version != 1) return no_profile("expected version 1, found " + std::to_string(version));
  STW_ASSIGN(name, get_string(body, "device"));
  const DeviceProfile* device = find_device(name);
  if (!device) return no_profile("there is no device " + quoted(name));
  DeviceProfile p = *device;
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
  STW_ASSIGN(product, figure(body, "product_permille", largest_permille));
  p.product_permille = static_cast<uint32_t>(product);
  STW_ASSIGN(stream, figure(body, "stream_permille", largest_permille));
  p.stream_permille = static_cast<uint32_t>(stream);
  // Older profiles lack both shares. Then attention had the share of products (0 here), and wgmma kernels
  // were assumed to reach the whole peak.
  p.attention_permille = 0, p.wgmma_permille = 1000;
  for (const auto& [key, share] :
       {std::pair{"attention_permille", &p.attention_permille}, {"wgmma_permille", &p.wgmma_permille}}) {
    if (!body.find(key)) continue;
    STW_ASSIGN(permille, figure(body, key, largest_permille));
    *share = static_cast<uint32_t>(permille);
  }
  STW_ASSIGN(step, figure(body, "step_nanoseconds", longest_nanoseconds));
  c.step_nanoseconds = step;
  STW_ASSIGN(ops, get_object(body, "ops"));
  STW_TRY(read_ops(*ops, c));
  return p;
}

}  // namespace

Json profile_json(const DeviceProfile& p) {
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
