// Plans as a whole: every figure of the file, the promises about budgets, and that every plan passes the judge.
#include "planner/plan.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "planner/json.h"
#include "planner/plan_file.h"
#include "planner/profile_file.h"
#include "src/hash.h"
#include "src/planned.h"
#include "tests/planner/calibrated_profiles.h"
#include "tests/planner/forged_plan.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

std::shared_ptr<const Model> open(const std::string& preset_or_json) {
  ModelSource source;
  (preset_or_json.starts_with("{") ? source.config_json : source.source) = preset_or_json;
  auto model = Model::open(source);
  if (!model) ADD_FAILURE() << model.error().message;
  return model ? *model : nullptr;
}

Request request(int64_t batch, int64_t sequence, uint64_t bytes = uint64_t{1} << 40) {
  Request r;
  r.memory_bytes = bytes;
  r.global_batch = batch;
  r.sequence = sequence;
  r.threads = 2;
  r.state_bits = 32;
  return r;
}

std::shared_ptr<const Planned> make(const Model& model, const Request& r) {
  auto planned = Planned::make(model, r);
  if (!planned) {
    ADD_FAILURE() << planned.error().message;
    return nullptr;
  }
  const Status status = (*planned)->verify();
  EXPECT_TRUE(status) << status.error().message;
  const Plan& p = (*planned)->plan;
  uint64_t sum = p.bytes.padding;
  for (uint64_t b : p.bytes.of) sum += b;
  EXPECT_EQ(sum, p.bytes.arena);
  EXPECT_EQ(p.bytes.peak, p.bytes.arena + p.bytes.reserve);
  EXPECT_EQ(p.fits, p.bytes.peak <= p.bytes.budget);
  EXPECT_GE(p.bytes.peak, p.minimum_bytes);
  EXPECT_GE(p.step_picoseconds, p.bound_picoseconds);
  EXPECT_GE(p.bytes.arena, p.layout_bound);
  EXPECT_EQ(p.accumulation_steps, (r.global_batch + p.decisions.micro_batch - 1) / p.decisions.micro_batch);
  EXPECT_EQ((p.accumulation_steps - 1) * p.decisions.micro_batch + p.last_micro_batch, r.global_batch);
  EXPECT_TRUE(p.last_micro_batch >= 1 && p.last_micro_batch <= p.decisions.micro_batch);
  return *planned;
}

// ---- the file ---------------------------------------------------------------------------------------------------

struct Field { const char* object; const char* key; Json::Kind kind; };
constexpr auto integer = Json::Kind::integer, number = Json::Kind::number, string = Json::Kind::string,
               boolean = Json::Kind::boolean, array = Json::Kind::array;
const Field fields[] = {
    {"", "format", string}, {"", "version", integer}, {"", "fingerprint", string}, {"", "fits", boolean},
    {"model", "architecture", string}, {"model", "parameters", integer}, {"model", "trainable", integer}, {"model", "layers", integer},
    {"device", "name", string}, {"device", "memory_bytes", integer}, {"device", "source", string},
    {"request", "vram_bytes", integer}, {"request", "host_bytes", integer}, {"request", "global_batch", integer},
    {"request", "sequence", integer}, {"request", "threads", integer},
    {"numerics", "precision", string}, {"numerics", "optimizer", string}, {"numerics", "state_bits", integer},
    {"numerics", "master", string}, {"numerics", "gradients", string}, {"numerics", "exact", boolean},
    {"", "micro_batch", integer}, {"", "accumulation_steps", integer}, {"", "last_micro_batch", integer},
    {"", "loss_chunks", integer}, {"", "recompute", array}, {"", "tiles", array}, {"", "offload", array},
    {"bytes", "parameters", integer}, {"bytes", "gradients", integer}, {"bytes", "optimizer", integer},
    {"bytes", "saved_activations", integer}, {"bytes", "transient", integer}, {"bytes", "workspace", integer},
    {"bytes", "inputs", integer}, {"bytes", "padding", integer}, {"bytes", "arena", integer}, {"bytes", "reserve", integer},
    {"bytes", "peak", integer}, {"bytes", "budget", integer}, {"bytes", "host", integer},
    {"predicted", "step_seconds", number}, {"predicted", "tokens_per_second", number}, {"predicted", "recompute_fraction", number},
    {"search", "bound_seconds", number}, {"search", "gap", number}, {"search", "proven", boolean},
    {"layout", "arena_bytes", integer}, {"layout", "lower_bound_bytes", integer}, {"layout", "gap", number}};

void expect_fields(const Json& json) {
  for (const Field& f : fields) {
    const Json* object = *f.object ? json.find(f.object) : &json;
    ASSERT_TRUE(object) << f.object;
    const Json* value = object->find(f.key);
    ASSERT_TRUE(value) << f.object << "." << f.key;
    EXPECT_EQ(value->kind(), f.kind) << f.object << "." << f.key;
  }
}

TEST(PlanFile, HasEveryField) {
  const auto model = open(small_llama());
  auto json = parse_json(make(*model, request(6, 33))->json);
  ASSERT_TRUE(json);
  expect_fields(*json);
  EXPECT_EQ(json->find("relaxations"), nullptr);
  EXPECT_EQ(*json->find("device")->find("source")->as_string(), "profile");
  const auto tight = make(*model, request(6, 33, 1000));
  EXPECT_FALSE(tight->plan.fits);
  json = parse_json(tight->json);
  ASSERT_TRUE(json);
  expect_fields(*json);
  EXPECT_EQ(*json->find("fits")->as_bool(), false);
  EXPECT_GT(*json->find("minimum_vram_bytes")->as_int(), 1000);
  ASSERT_FALSE(json->find("relaxations")->elements().empty());
  for (const Json& r : json->find("relaxations")->elements()) {
    EXPECT_TRUE(r.find("change")->is_string());
    EXPECT_GT(*r.find("saves_bytes")->as_int(), 0);
    EXPECT_TRUE(r.find("costs_fraction")->as_double());
    EXPECT_TRUE(r.find("changes_numerics")->as_bool());
  }
}

TEST(PlanFile, ReadsBackAsTheSamePlan) {
  for (const std::string& config : {small_gpt2("0.1"), small_llama(), small_qwen2(), with_positions(small_qwen2(), 1100)})
    for (Precision precision : {Precision::fp32, Precision::bf16}) {
      const auto model = open(config);
      const bool is_long = config.find("1100") != std::string::npos;
      Request r = is_long ? request(1, 1100) : request(7, 33);
      r.precision = precision;
      r.memory_bytes = 1;
      r.memory_bytes = make(*model, r)->plan.minimum_bytes * 21 / 20;
      const auto planned = make(*model, r);
      EXPECT_EQ(planned->plan.decisions.tile_rows.empty(), !is_long);
      auto again = Planned::load(*model, planned->json);
      ASSERT_TRUE(again) << again.error().message;
      EXPECT_EQ((*again)->json, planned->json);
      EXPECT_TRUE((*again)->plan.decisions == planned->plan.decisions);
      EXPECT_EQ((*again)->programs.arena_bytes, planned->programs.arena_bytes);
      EXPECT_TRUE((*again)->verify());
      EXPECT_EQ(plan_fingerprint(planned->json).size(), 16u);
    }
}

TEST(PlanFile, RefusesWhatWasChanged) {
  const auto model = open(small_llama());
  const std::string good = make(*model, request(6, 33))->json;
  // The fingerprint is that of the canonical text without itself.
  auto json = parse_json(good);
  Json body = Json::object();
  for (const auto& [key, value] : json->members())
    if (key != "fingerprint") body.set(key, value);
  const std::string canonical = to_string(body, 0);
  char expected[17];
  std::snprintf(expected, sizeof expected, "%016llx", static_cast<unsigned long long>(hash64(canonical.data(), canonical.size())));
  EXPECT_EQ(plan_fingerprint(good), expected);

  // A right fingerprint does not make sense of what it covers.
  const auto tiles = [](int64_t first, Json rows) {
    return Json(Json::Array{Json::object().set("blocks", Json::Array{first, 1}).set("rows", std::move(rows))});
  };
  const std::pair<const char*, Json> forged[] = {
      {"loss_chunks", INT64_MAX}, {"loss_chunks", 1025}, {"micro_batch", INT64_MAX}, {"tiles", 7}, {"tiles", tiles(0, 100)},
      {"tiles", tiles(0, -256)}, {"tiles", tiles(5, 256)}, {"tiles", tiles(0, Json())}, {"tiles", tiles(0, 256)}};   // the last one: its blocks keep what lies inside
  const auto refuse = [&](const Json& plan, const std::string& key, const Json& value) {
    const auto loaded = Planned::load(*model, with_fingerprint(with_value(plan, {key}, value)));
    ASSERT_FALSE(loaded) << key;
    EXPECT_EQ(loaded.error().code, Code::corrupt);
    EXPECT_EQ(loaded.error().message.find("edited"), std::string::npos) << loaded.error().message;
  };
  for (const auto& [key, value] : forged) refuse(body, key, value);
  // Tiles that a block may have, but for their number.
  Request many = request(300, 33);
  many.micro_batch = 300;
  many.recompute = Recompute::full;
  refuse(*parse_json(make(*model, many)->json), "tiles", tiles(0, 64));

  EXPECT_FALSE(Planned::load(*model, ""));
  EXPECT_FALSE(Planned::load(*model, "{}"));
  EXPECT_FALSE(Planned::load(*model, good.substr(0, good.size() / 2)));
  for (size_t at = good.find("\"fits\""); at < good.size(); ++at) {
    if (good[at] < '0' || good[at] > '9') continue;
    std::string bad = good;
    bad[at] = good[at] == '9' ? '1' : static_cast<char>(good[at] + 1);
    auto parsed = parse_json(bad);
    if (parsed && *parsed == *json) continue;   // the last digit of a double may not matter
    auto status = Planned::load(*model, bad);
    ASSERT_FALSE(status) << good.substr(at < 40 ? 0 : at - 40, 60);
    EXPECT_EQ(status.error().code, Code::corrupt);
  }
  // White space is no change.
  EXPECT_TRUE(Planned::load(*model, to_string(*json, 0)));
  auto other = Planned::load(*open(small_qwen2()), good);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("another model"), std::string::npos) << other.error().message;
}

// Each value by itself may stand in a plan, but not beside the others.
TEST(PlanFile, RefusesWhatNoRequestMayAskFor) {
  const auto model = open(small_llama());
  Request r = request(6, 33);
  r.micro_batch = 2;
  r.recompute = Recompute::full;
  const Json body = *parse_json(make(*model, r)->json);
  ASSERT_TRUE(Planned::load(*model, with_fingerprint(with_value(body, {"search", "gap"}, 0.0))));   // forging by itself does no harm
  const auto run = [](int64_t first, int64_t last) {
    return Json::object().set("blocks", Json::Array{first, last}).set("tensors", Json::Array{"ffn_norm"});
  };
  const std::pair<std::vector<std::string>, Json> values[] = {
      {{"numerics", "fused_update"}, true}, {{"numerics", "kernels"}, "tensor"}, {{"numerics", "kernels"}, "cublaslt"},
      {{"numerics", "attention"}, "cudnn"}, {{"request", "micro_batch"}, 7}, {{"request", "micro_batch"}, -1},
      {{"request", "state_bits"}, 16}, {{"request", "recompute"}, "some"}, {{"bytes", "budget"}, 1}, {{"predicted", "step_seconds"}, 1e-13},
      {{"recompute"}, Json::Array{run(0, 3)}}, {{"recompute"}, Json::Array{run(-1, 1)}}, {{"recompute"}, Json::Array{run(2, 1)}},
      {{"recompute"}, Json::Array{run(0, 1), run(1, 2)}}, {{"recompute"}, Json::Array{run(1, 2), run(0, 0)}}};
  for (const auto& [keys, value] : values) {
    const auto loaded = Planned::load(*model, with_fingerprint(with_value(body, keys, value)));
    ASSERT_FALSE(loaded) << keys.back() << ' ' << to_string(value, 0);
    EXPECT_EQ(loaded.error().code, Code::corrupt) << loaded.error().message;
  }
  // One micro-step is all that a fused update has: of two, the second would do nothing.
  r.micro_batch = 0;
  r.fused_update = true;
  const auto loaded = Planned::load(*model, with_fingerprint(with_value(*parse_json(make(*model, r)->json), {"micro_batch"}, 3)));
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("micro-step"), std::string::npos) << loaded.error().message;
}

// Time that grows with the square of a file is a way to hold up whoever reads it.
TEST(PlanFile, ManyKeysTakeNoLonger) {
  const auto model = open(small_llama());
  std::string text = R"({"format":"stowage-plan","version":1,"fingerprint":"0")";
  for (int i = 0; i < 300'000; ++i) text += ",\"" + std::to_string(i) + "\":0";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(Planned::load(*model, text + "}"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

// A plan that was made with a calibrated profile says with which, and nothing but its text is needed to have it again.
TEST(PlanFile, HoldsTheProfileItWasMadeWith) {
  const auto model = open(small_llama());
  Request r = request(7, 33);
  const std::string plain = make(*model, r)->json;
  EXPECT_EQ(parse_json(plain)->find("device")->find("calibration"), nullptr);
  for (uint32_t seed = 1; seed < 6; ++seed) {
    r.calibrated = random_profile("cpu", seed);
    r.memory_bytes = make(*model, r)->plan.minimum_bytes * 21 / 20;
    const auto planned = make(*model, r);
    EXPECT_NE(plan_fingerprint(planned->json), plan_fingerprint(plain));
    EXPECT_NE(planned->report.find("calibrated"), std::string::npos);
    auto again = Planned::load(*model, planned->json);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ((*again)->json, planned->json);
    EXPECT_EQ((*again)->report, planned->report);
    EXPECT_TRUE((*again)->verify());
    // Its request gives the same plan once more.
    EXPECT_EQ(make(*model, (*again)->plan.request)->json, planned->json);

    Json body = Json::object();
    const auto json = parse_json(planned->json);
    for (const auto& [key, value] : json->members())
      if (key != "fingerprint") body.set(key, value);
    Json device = *body.find("device");
    for (const Json& calibration : {Json(), Json("fast"), profile_json(random_profile("h100", seed)), Json::object()}) {
      device.set("calibration", calibration);
      body.set("device", device);
      const std::string canon = to_string(body, 0);
      char fingerprint[17];
      std::snprintf(fingerprint, sizeof fingerprint, "%016llx", static_cast<unsigned long long>(hash64(canon.data(), canon.size())));
      Json forged = body;
      forged.set("fingerprint", fingerprint);
      const auto loaded = Planned::load(*model, to_string(forged, 1));
      ASSERT_FALSE(loaded) << to_string(calibration, 0);
      EXPECT_EQ(loaded.error().code, Code::corrupt);
      EXPECT_NE(loaded.error().message.find("profile"), std::string::npos) << loaded.error().message;
    }
  }
}

// ---- the promises about budgets ---------------------------------------------------------------------------------

void sweep(const std::string& name, Request r, int points) {
  const auto model = open(name);
  r.memory_bytes = uint64_t{1} << 50;
  const uint64_t most = make(*model, r)->plan.bytes.peak;
  r.memory_bytes = 1;
  const auto none = make(*model, r);
  ASSERT_FALSE(none->plan.fits);
  const uint64_t least = none->plan.minimum_bytes;
  ASSERT_EQ(none->plan.bytes.peak, least) << "the plan shown is the smallest one";
  uint64_t peak = 0, seconds = UINT64_MAX;
  for (int i = 0; i <= points; ++i) {
    r.memory_bytes = least + (most - least) / static_cast<uint64_t>(points) * static_cast<uint64_t>(i);
    const auto planned = make(*model, r);
    ASSERT_TRUE(planned->plan.fits) << name << " " << r.memory_bytes;
    EXPECT_GE(planned->plan.bytes.peak, peak) << name << ": a tighter budget has a higher peak";
    EXPECT_LE(planned->plan.step_picoseconds, seconds) << name << ": a looser budget is slower";
    EXPECT_EQ(planned->plan.minimum_bytes, least);
    peak = planned->plan.bytes.peak;
    seconds = planned->plan.step_picoseconds;
  }
  r.memory_bytes = least - 1;
  const auto below = make(*model, r);
  EXPECT_FALSE(below->plan.fits);
  EXPECT_EQ(below->plan.minimum_bytes, least);
}

TEST(Budget, SmallModels) {
#ifdef STW_SANITIZED
  const int points = 6;
#else
  const int points = 24;
#endif
  for (const std::string& config : {small_gpt2("0.1"), small_llama(), small_qwen2()}) {
    sweep(config, request(12, 33), points);
    Request r = request(7, 33);
    r.state_bits = 8;
    r.precision = Precision::bf16;
    sweep(config, r, points / 2);
    r.recompute = Recompute::none;
    sweep(config, r, points / 4);
    r.recompute = Recompute::full;
    r.micro_batch = 3;
    sweep(config, r, 3);
  }
}

TEST(Budget, Presets) {
  sweep("nano", request(12, 64), 8);
  sweep("gpt2", request(8, 256), 6);
}

// The library's instructions are faster on Hopper; weight gradients sample after sample cost what their sums move.
TEST(Price, OfTheLibrarysProducts) {
  const auto model = open("gpt2");
  Request r = request(512, least_library_sample);   // the shortest, with the fewest multiply-adds a sum
  r.device = "h100";
  r.precision = Precision::bf16;
  const auto tensor = make(*model, r);
  r.kernels = Kernels::cublaslt;
  const auto exact = make(*model, r);
  r.fast = true;
  const auto fast = make(*model, r);
  EXPECT_TRUE(exact->plan.numerics.exact);
  EXPECT_FALSE(fast->plan.numerics.exact);
  EXPECT_LT(fast->plan.step_picoseconds, exact->plan.step_picoseconds);
  EXPECT_LT(static_cast<double>(fast->plan.step_picoseconds), 0.75 * static_cast<double>(tensor->plan.step_picoseconds));
  EXPECT_TRUE(exact->plan.decisions.tile_rows.empty());
  const auto read = Planned::load(*model, fast->json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->plan.numerics, fast->plan.numerics);

  r.kernels = Kernels::tensor;   // nothing to gain
  EXPECT_TRUE(make(*model, r)->plan.numerics.exact);
  r.device = "cpu";
  r.kernels = {};
  r.precision = Precision::fp32;
  EXPECT_TRUE(make(*model, r)->plan.numerics.exact);
  r.kernels = Kernels::cublaslt;
  const auto refused = Planned::make(*model, r);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("cuBLASLt is for GPUs"), std::string::npos) << refused.error().message;
}

// cuDNN's gradient keeps scores: the longer the samples, the more; where they do not fit, our own attention is offered.
TEST(Price, OfTheLibrarysAttention) {
  const auto model = open("smollm-135m");
  Request r = request(8, 2048);
  r.device = "h100";
  r.precision = Precision::bf16;
  r.state_bits = 32;
  const auto own = make(*model, r);
  r.attention = Attention::cudnn;
  const auto library = make(*model, r);
  EXPECT_LT(library->plan.step_picoseconds, own->plan.step_picoseconds);
  EXPECT_GT(library->plan.minimum_bytes, std::max(own->plan.minimum_bytes, library->plan.bytes.reserve + uint64_t{2} * 9 * 2048 * 2048));
  const auto read = Planned::load(*model, library->json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->plan.numerics.attention, Attention::cudnn);
  r.memory_bytes = own->plan.minimum_bytes;
  const auto tight = Planned::make(*model, r);
  ASSERT_TRUE(tight) << tight.error().message;
  ASSERT_FALSE((*tight)->plan.fits);
  EXPECT_TRUE(std::any_of((*tight)->plan.relaxations.begin(), (*tight)->plan.relaxations.end(), [](const Relaxation& x) { return x.change == "attention own"; }));

  const auto refusal = [&](const auto& change) {
    Request other = request(8, 256);
    other.device = "h100";
    other.precision = Precision::bf16;
    other.attention = Attention::cudnn;
    change(other);
    const auto refused = Planned::make(*model, other);
    return refused ? std::string() : refused.error().message;
  };
  EXPECT_EQ(refusal([](Request&) {}), "");
  EXPECT_NE(refusal([](Request& o) { o.precision = Precision::fp32; }).find("16-bit precisions on a GPU"), std::string::npos);
  EXPECT_NE(refusal([](Request& o) { o.device = "cpu"; }).find("16-bit precisions on a GPU"), std::string::npos);
  EXPECT_NE(refusal([](Request& o) { o.inputs.positions = true; }).find("documents"), std::string::npos);
}

// Kernels without the tensor cores compute at the fp32 peak.
TEST(Price, OfPortableKernels) {
  const auto model = open("gpt2");
  Request r = request(8, 1024);
  r.device = "a100-80gb";
  r.precision = Precision::bf16;
  const auto tensor = make(*model, r);
  r.kernels = Kernels::portable;
  const auto portable = make(*model, r);
  EXPECT_GT(portable->plan.step_picoseconds, 3 * tensor->plan.step_picoseconds);
  r.precision = Precision::fp32;
  EXPECT_LT(portable->plan.step_picoseconds, make(*model, r)->plan.step_picoseconds) << "less memory to read";

  r.kernels = {};   // what a change to 16 bits costs is told with the kernels that it would run on
  r.memory_bytes = 1;
  const auto none = make(*model, r);
  const auto it = std::find_if(none->plan.relaxations.begin(), none->plan.relaxations.end(),
                               [](const Relaxation& x) { return x.change == "precision bf16"; });
  ASSERT_NE(it, none->plan.relaxations.end());
  EXPECT_LT(it->costs_fraction, -0.7);
}

// 32-bit states unless they do not fit or cost more than a tenth of the speed; the reason is recorded.
TEST(Budget, StatesAreChosen) {
  const auto model = open("nano");
  Request r = request(12, 256);
  r.memory_bytes = 1;
  const uint64_t least32 = make(*model, r)->plan.minimum_bytes;
  r.state_bits = 8;
  const uint64_t least8 = make(*model, r)->plan.minimum_bytes;
  ASSERT_LT(least8, least32);
  r.state_bits = 0;
  EXPECT_EQ(make(*model, r)->plan.minimum_bytes, least8);
  r.memory_bytes = least32 - 1;
  auto planned = make(*model, r);
  EXPECT_TRUE(planned->plan.fits);
  EXPECT_EQ(planned->plan.numerics.state_bits, 8);
  EXPECT_EQ(planned->plan.states_reason, "32-bit states do not fit");
  r.memory_bytes = uint64_t{1} << 40;
  planned = make(*model, r);
  EXPECT_EQ(planned->plan.numerics.state_bits, 32);
  EXPECT_EQ(planned->plan.states_reason, "32-bit states fit");
  for (uint64_t i = 0; i <= 8; ++i) {
    r.memory_bytes = least32 + (least32 / 2) * i / 8;
    planned = make(*model, r);
    ASSERT_TRUE(planned->plan.fits);
    Request pinned = r;
    pinned.state_bits = 32;
    const double wide = static_cast<double>(make(*model, pinned)->plan.step_picoseconds);
    pinned.state_bits = 8;
    const double narrow = static_cast<double>(make(*model, pinned)->plan.step_picoseconds);
    EXPECT_EQ(planned->plan.numerics.state_bits, wide * 0.9 > narrow ? 8 : 32) << r.memory_bytes;
  }
}

TEST(Search, ForcedChoicesAreKept) {
  const auto model = open(small_llama());
  for (int64_t m : {1, 2, 5, 7}) {
    Request r = request(7, 33);
    r.micro_batch = m;
    r.recompute = Recompute::none;
    auto planned = make(*model, r);
    EXPECT_EQ(planned->plan.decisions.micro_batch, m);
    EXPECT_EQ(planned->plan.recompute_picoseconds, 0u);
    auto json = parse_json(planned->json);
    EXPECT_TRUE(json->find("recompute")->elements().empty());
    r.recompute = Recompute::full;
    planned = make(*model, r);
    for (size_t s = 0; s < planned->graph.segments.size(); ++s)
      if (planned->graph.segments[s].kind == SegmentKind::block) {
        EXPECT_EQ(planned->plan.decisions.saved[s], 0u);
      }
    json = parse_json(planned->json);
    EXPECT_EQ(json->find("recompute")->elements().size(), 1u);
  }
}

// Twice the shares: faster, but not twice, because the launches stay.
TEST(Search, FollowsTheCalibratedFigures) {
  const auto model = open(small_gpt2());
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    Request r = request(12, 33);
    const auto plain = make(*model, r);
    r.calibrated = random_profile("cpu", seed);
    const auto same = make(*model, r);
    EXPECT_NE(same->plan.step_picoseconds, plain->plan.step_picoseconds);
    for (Calibration::Op& op : r.calibrated->calibration.ops) op.permille *= 2;
    r.calibrated->product_permille *= 2;
    r.calibrated->stream_permille *= 2;
    const auto faster = make(*model, r);
    EXPECT_LT(faster->plan.step_picoseconds, same->plan.step_picoseconds);
    EXPECT_GT(faster->plan.step_picoseconds, same->plan.step_picoseconds / 2);
    r.calibrated->launch_nanoseconds *= 10;
    for (Calibration::Op& op : r.calibrated->calibration.ops) op.launch_nanoseconds *= 10;
    EXPECT_GT(make(*model, r)->plan.step_picoseconds, faster->plan.step_picoseconds);
  }
}

TEST(Search, RefusesNonsense) {
  const auto model = open(small_llama());
  auto code = [&](const Request& r) {
    auto planned = Planned::make(*model, r);
    return planned ? Code::ok : planned.error().code;
  };
  Request r = request(4, 33);
  EXPECT_EQ(code(r), Code::ok);
  r.device = "abacus";
  EXPECT_EQ(code(r), Code::bad_argument);
  r = request(4, 33);
  r.calibrated = random_profile("h100", 1);
  EXPECT_EQ(code(r), Code::bad_argument);
  r.device = "h100";
  EXPECT_EQ(code(r), Code::ok);
  r = request(0, 33);
  EXPECT_EQ(code(r), Code::bad_argument);
  r = request(-1, 33);
  EXPECT_EQ(code(r), Code::bad_argument);
  r = request(4, 0);
  EXPECT_EQ(code(r), Code::unsupported_shape);
  r = request(4, 41);
  EXPECT_EQ(code(r), Code::unsupported_shape);
  r = request(4, 33);
  r.micro_batch = 5;
  EXPECT_EQ(code(r), Code::bad_argument);
  r = request(4, 33);
  for (int threads : {0, -1, 1025}) {
    r.threads = threads;
    EXPECT_EQ(code(r), Code::bad_argument);
  }
  r = request(int64_t{1} << 31, 33);
  EXPECT_EQ(code(r), Code::bad_argument);
  r = request(4, 33, 0);
  EXPECT_EQ(code(r), Code::bad_argument);   // nobody knows the processor's memory here
}

// ---- presets on devices -----------------------------------------------------------------------------------------

TEST(Search, EveryPresetHasACorrectPlan) {
  const char* devices[] = {"rtx4060", "rtx4090", "a100-80gb", "h200"};
  for (size_t i = 0; preset_name(i); ++i) {
    const auto model = open(preset_name(i));
    Request r = request(16, std::min<int64_t>(model->config().positions, 1024), 0);
    r.device = devices[i % 4];
    r.precision = Precision::bf16;
    r.state_bits = 0;
    r.threads = 1;
    const auto planned = make(*model, r);
    ASSERT_TRUE(planned) << preset_name(i);
    EXPECT_EQ(planned->plan.bytes.budget, find_device(r.device)->memory_bytes);
    EXPECT_EQ(planned->plan.bytes.reserve, find_device(r.device)->reserve_bytes);
    for (const Buffer& b : planned->programs.arena.persistent) EXPECT_EQ(b.offset % 256, 0u);
  }
}

// Where many threads make layouts with gaps, the smallest arena is not the one with the fewest bytes alive.
TEST(Search, TheMinimumIsTheSmallestBudgetThatWorks) {
  const auto model = open("gpt2");
  Request r = request(3, 200, 0);
  r.threads = 128;
  r.state_bits = 8;
  r.memory_bytes = 1;
  const uint64_t minimum = make(*model, r)->plan.minimum_bytes;
  r.memory_bytes = minimum;
  EXPECT_EQ(make(*model, r)->plan.bytes.peak, minimum);
  for (const uint64_t less : {uint64_t{1}, uint64_t{100000}, uint64_t{614400}, uint64_t{1} << 20}) {
    r.memory_bytes = minimum - less;
    EXPECT_FALSE(make(*model, r)->plan.fits) << less;
  }
}

// Sizes and times at the ends of 64 bits are answers or errors, not wraps.
TEST(Search, BeyondAllMeasureIsRefused) {
  for (const char* name : {"nano", "llama-1b", "gpt2-xl"}) {
    const auto model = open(name);
    for (const int64_t batch : {int64_t{100000000}, int64_t{400000000}, int64_t{INT32_MAX}})
      for (const int64_t micro : {int64_t{0}, int64_t{1}, batch})
        for (const uint64_t budget : {uint64_t{1} << 30, uint64_t{1} << 46, uint64_t{1} << 62}) {
          Request r = request(batch, model->config().positions, budget);
          r.micro_batch = micro;
          const auto planned = Planned::make(*model, r);
          if (!planned) {
            EXPECT_EQ(planned.error().code, Code::bad_argument) << planned.error().message;
            continue;
          }
          const Plan& p = (*planned)->plan;
          EXPECT_LT(p.step_picoseconds, size_limit);
          EXPECT_TRUE(!p.fits || p.bytes.peak <= budget);
        }
  }
}

TEST(Search, IsDeterministic) {
  for (const char* name : {"llama-8b", "smollm-360m"}) {
    Request r = request(32, 2048, 0);
    r.device = name == std::string("llama-8b") ? "b200" : "rtx4060";
    r.precision = Precision::bf16;
    const std::string first = make(*open(name), r)->json;
    EXPECT_EQ(make(*open(name), r)->json, first);
  }
}

}  // namespace
}  // namespace stw
