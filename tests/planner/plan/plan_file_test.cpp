// Plans as files: every field is tested, and only text that was written is accepted.
#include "planner/plan/plan_file.h"

#include <chrono>

#include "planner/base/json.h"
#include "planner/device/profile_file.h"
#include "planner/plan/numerics_file.h"
#include "src/base/hash.h"
#include "tests/planner/device/calibrated_profiles.h"
#include "tests/planner/plan/forged_plan.h"
#include "tests/planner/plans.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

struct Field {
  const char* object;
  const char* key;
  Json::Kind kind;
};
constexpr auto integer = Json::Kind::integer, number = Json::Kind::number, string = Json::Kind::string,
               boolean = Json::Kind::boolean, array = Json::Kind::array;
const Field fields[] = {{"", "format", string},
                        {"", "version", integer},
                        {"", "fingerprint", string},
                        {"", "fits", boolean},
                        {"model", "architecture", string},
                        {"model", "parameters", integer},
                        {"model", "trainable", integer},
                        {"model", "layers", integer},
                        {"device", "name", string},
                        {"device", "memory_bytes", integer},
                        {"device", "source", string},
                        {"request", "vram_bytes", integer},
                        {"request", "host_bytes", integer},
                        {"request", "global_batch", integer},
                        {"request", "sequence", integer},
                        {"request", "threads", integer},
                        {"numerics", "precision", string},
                        {"numerics", "optimizer", string},
                        {"numerics", "state_bits", integer},
                        {"numerics", "master", string},
                        {"numerics", "gradients", string},
                        {"numerics", "exact", boolean},
                        {"", "micro_batch", integer},
                        {"", "accumulation_steps", integer},
                        {"", "last_micro_batch", integer},
                        {"", "loss_chunks", integer},
                        {"", "recompute", array},
                        {"", "tiles", array},
                        {"", "offload", array},
                        {"bytes", "parameters", integer},
                        {"bytes", "gradients", integer},
                        {"bytes", "optimizer", integer},
                        {"bytes", "saved_activations", integer},
                        {"bytes", "transient", integer},
                        {"bytes", "workspace", integer},
                        {"bytes", "inputs", integer},
                        {"bytes", "padding", integer},
                        {"bytes", "arena", integer},
                        {"bytes", "reserve", integer},
                        {"bytes", "peak", integer},
                        {"bytes", "budget", integer},
                        {"bytes", "host", integer},
                        {"predicted", "step_seconds", number},
                        {"predicted", "tokens_per_second", number},
                        {"predicted", "recompute_fraction", number},
                        {"search", "bound_seconds", number},
                        {"search", "gap", number},
                        {"search", "proven", boolean},
                        {"layout", "arena_bytes", integer},
                        {"layout", "lower_bound_bytes", integer},
                        {"layout", "gap", number}};

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
  for (const std::string& config :
       {small_gpt2("0.1"), small_llama(), small_qwen2(), small_qwen3(), with_positions(small_qwen2(), 1100)})
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

TEST(PlanFile, RefusesEditedPlans) {
  const auto model = open(small_llama());
  const std::string good = make(*model, request(6, 33))->json;
  // The fingerprint is that of the canonical value without the fingerprint itself.
  auto json = parse_json(good);
  Json body = Json::object();
  for (const auto& [key, value] : json->members())
    if (key != "fingerprint") body.set(key, value);
  const auto print_of = [](const std::string& text) {
    char print[17];
    std::snprintf(print, sizeof print, "%016llx",
                  static_cast<unsigned long long>(hash64(text.data(), text.size())));
    return std::string(print);
  };
  EXPECT_EQ(plan_fingerprint(good), print_of(to_string(canonical(body), 0)));
  EXPECT_NE(to_string(canonical(body), 0), to_string(body, 0));
  for (const bool whole : {true, false}) {  // true: the canonical text; false: the text of version 0.1.0
    Json same = whole ? canonical(body) : body;
    same.set("fingerprint", print_of(to_string(whole ? canonical(body) : body, 0)));
    const auto loaded = Planned::load(*model, to_string(same, 0));
    EXPECT_TRUE(loaded) << loaded.error().message;
  }

  // A correct fingerprint does not make the values valid.
  const auto tiles = [](int64_t first, Json rows) {
    return Json(
        Json::Array{Json::object().set("blocks", Json::Array{first, 1}).set("rows", std::move(rows))});
  };
  const std::pair<const char*, Json> forged[] = {{"loss_chunks", INT64_MAX},
                                                 {"loss_chunks", 1025},
                                                 {"micro_batch", INT64_MAX},
                                                 {"tiles", 7},
                                                 {"tiles", tiles(0, 100)},
                                                 // The last of these is refused because blocks 0 and 1 keep
                                                 // inner tensors.
                                                 {"tiles", tiles(0, -256)},
                                                 {"tiles", tiles(0, 64)},
                                                 {"tiles", tiles(5, 256)},
                                                 {"tiles", tiles(0, Json())},
                                                 {"tiles", tiles(0, 256)}};
  const auto refuse = [&](const Json& plan, const std::string& key, const Json& value) {
    const auto loaded = Planned::load(*model, with_fingerprint(with_value(plan, {key}, value)));
    ASSERT_FALSE(loaded) << key;
    EXPECT_EQ(loaded.error().code, Code::bad_state);
    EXPECT_EQ(loaded.error().message.find("edited"), std::string::npos) << loaded.error().message;
  };
  for (const auto& [key, value] : forged) refuse(body, key, value);
  const auto unequal =
      Planned::load(*model, with_fingerprint(with_value(body, {"bytes", "optimizer"}, uint64_t{1} << 63)));
  ASSERT_FALSE(unequal);
  EXPECT_NE(unequal.error().message.find("the bytes of its classes do not add up to its arena"),
            std::string::npos)
      << unequal.error().message;
  // Tiles that a block may have, but too many of them.
  Request many = request(1200, 33);
  many.micro_batch = 1200;
  many.recompute = Recompute::full;
  refuse(*parse_json(make(*model, many)->json), "tiles", tiles(0, 256));
  many.global_batch = many.micro_batch = 300;
  EXPECT_TRUE(Planned::load(
      *model, with_fingerprint(with_value(*parse_json(make(*model, many)->json), {"tiles"}, tiles(0, 256)))));

  EXPECT_FALSE(Planned::load(*model, ""));
  EXPECT_FALSE(Planned::load(*model, "{}"));
  EXPECT_FALSE(Planned::load(*model, good.substr(0, good.size() / 2)));
  for (size_t at = good.find("\"fits\""); at < good.size(); ++at) {
    if (good[at] < '0' || good[at] > '9') continue;
    std::string bad = good;
    bad[at] = good[at] == '9' ? '1' : static_cast<char>(good[at] + 1);
    auto parsed = parse_json(bad);
    if (parsed && *parsed == *json) continue;  // the last digit of a double may not matter
    auto status = Planned::load(*model, bad);
    ASSERT_FALSE(status) << good.substr(at < 40 ? 0 : at - 40, 60);
    EXPECT_EQ(status.error().code, Code::corrupt);
  }
  // White space is not a change.
  EXPECT_TRUE(Planned::load(*model, to_string(*json, 0)));
  auto other = Planned::load(*open(small_qwen2()), good);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("another model"), std::string::npos) << other.error().message;
}

// A group contains its own settings and no others. Groups before it decide the missing ones.
TEST(PlanFile, GroupsAreReadBackUnchanged) {
  Numerics n;
  n.groups = {{"*", {}, {}, {}, {}},        {"embeddings", true, {}, {}, {}}, {"blocks.1", false, {}, {}, {}},
              {"norms", {}, 0.5, {}, {}},   {"head", {}, {}, 0.25, {}},       {"blocks.0", {}, {}, {}, 8},
              {"blocks.2", {}, {}, {}, 32}, {"matrices", false, 0.0, 0.0, 8}};
  const Json json = numerics_json(n, "");
  const auto read = numerics_from(json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, n);
  EXPECT_TRUE(json.find("groups")->elements()[0] == Json::object().set("pattern", "*"));
}

// A trainer plans again from the request of the plan that it read (stw_trainer_replan). Together the requests
// give every field of RequestedNumerics another value than the default.
TEST(PlanFile, ItsRequestKeepsTheNumerics) {
  ModelSource source;
  source.source = "qwen2.5-0.5b";
  source.adapters = adapters_of_all();
  const auto adapted = *Model::open(source);
  Request all = request(4, 64);
  all.precision = Precision::bf16;
  all.optimizer = Optimizer::lion;
  all.master = Master::stochastic;
  all.gradients = Gradients::bf16;
  all.groups = {{"blocks.0", true, {}, {}, {}}, {"matrices", {}, 0.5, {}, {}}};
  all.quantize = Quantize::nf4;
  all.quantize_embeddings = Quantize::int8;
  all.inputs = {true, true};
  Request fused = request(2, 33);
  fused.fused_update = true;
  Request pairs = request(2, 33);
  pairs.inputs = {true, false, Preference::simpo};
  Request texts = request(2, 33);
  texts.inputs.texts = 7;
  Request library = request(4, 256);
  library.device = "h100";
  library.threads = 0;
  library.precision = Precision::bf16;
  library.attention = Attention::cudnn;
  const std::pair<std::shared_ptr<const Model>, Request> cases[] = {
      {adapted, all},
      {open(small_llama()), fused},
      {open(small_llama()), pairs},
      {open(classifier_of(small_bert())), texts},
      {open("smollm-135m"), library}};
  for (const auto& [model, wanted] : cases) {
    const auto planned = make(*model, wanted);
    const auto read = Planned::load(*model, planned->json);
    ASSERT_TRUE(read) << read.error().message;
    const Request& kept = (*read)->plan.request;
    EXPECT_TRUE(static_cast<const RequestedNumerics&>(kept) == static_cast<const RequestedNumerics&>(wanted));
    EXPECT_EQ(numerics_of(kept, planned->plan.numerics.state_bits), planned->plan.numerics);
  }
}

TEST(PlanFile, RefusesANumberOfTextsThatNoSampleHas) {
  const auto model = open(classifier_of(small_bert()));
  Request texts = request(2, 33);
  texts.inputs.texts = 7;
  const Json body = *parse_json(make(*model, texts)->json);
  for (const int64_t count : {int64_t{-1}, int64_t{1} << 31, INT64_MAX}) {
    const auto loaded =
        Planned::load(*model, with_fingerprint(with_value(body, {"numerics", "texts"}, count)));
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().message.find("texts is " + std::to_string(count)), std::string::npos)
        << loaded.error().message;
  }
}

// A plan may contain each value alone, but not together with the others.
TEST(PlanFile, RefusesContradictoryValues) {
  const auto model = open(small_llama());
  Request r = request(6, 33);
  r.micro_batch = 2;
  r.recompute = Recompute::full;
  const Json body = *parse_json(make(*model, r)->json);
  // A forged fingerprint alone is accepted.
  ASSERT_TRUE(Planned::load(*model, with_fingerprint(with_value(body, {"search", "gap"}, 0.0))));
  const auto run = [](int64_t first, int64_t last) {
    return Json::object().set("blocks", Json::Array{first, last}).set("tensors", Json::Array{"ffn_norm"});
  };
  const std::pair<std::vector<std::string>, Json> values[] = {
      {{"numerics", "fused_update"}, true},
      {{"numerics", "kernels"}, "tensor"},
      {{"numerics", "kernels"}, "cublaslt"},
      {{"numerics", "attention"}, "cudnn"},
      {{"request", "micro_batch"}, 7},
      {{"request", "micro_batch"}, -1},
      {{"request", "state_bits"}, 16},
      {{"request", "recompute"}, "some"},
      {{"bytes", "budget"}, 1},
      {{"predicted", "step_seconds"}, 1e-13},
      {{"recompute"}, Json::Array{run(0, 3)}},
      {{"recompute"}, Json::Array{run(-1, 1)}},
      {{"recompute"}, Json::Array{run(2, 1)}},
      {{"recompute"}, Json::Array{run(0, 1), run(1, 2)}},
      {{"recompute"}, Json::Array{run(1, 2), run(0, 0)}}};
  for (const auto& [keys, value] : values) {
    const auto loaded = Planned::load(*model, with_fingerprint(with_value(body, keys, value)));
    ASSERT_FALSE(loaded) << keys.back() << ' ' << to_string(value, 0);
    EXPECT_EQ(loaded.error().code, Code::bad_state) << loaded.error().message;
  }
  // A fused update has one micro-step. With two, the second would do nothing.
  r.micro_batch = 0;
  r.fused_update = true;
  const auto loaded = Planned::load(
      *model, with_fingerprint(with_value(*parse_json(make(*model, r)->json), {"micro_batch"}, 3)));
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("micro-step"), std::string::npos) << loaded.error().message;
}

// Parsing time must not grow with the square of the file's size, or a file could block its reader.
TEST(PlanFile, ManyKeysTakeNoLonger) {
  const auto model = open(small_llama());
  std::string text = R"({"format":"stowage-plan","version":1,"fingerprint":"0")";
  for (int i = 0; i < 300'000; ++i) text += ",\"" + std::to_string(i) + "\":0";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(Planned::load(*model, text + "}"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

// A plan from a calibrated profile contains that profile. The text of the plan is enough to load it.
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
    // Its request gives the same plan again.
    EXPECT_EQ(make(*model, (*again)->plan.request)->json, planned->json);

    Json body = Json::object();
    const auto json = parse_json(planned->json);
    for (const auto& [key, value] : json->members())
      if (key != "fingerprint") body.set(key, value);
    Json device = *body.find("device");
    for (const Json& calibration :
         {Json(), Json("fast"), profile_json(random_profile("h100", seed)), Json::object()}) {
      device.set("calibration", calibration);
      body.set("device", device);
      const std::string canon = to_string(body, 0);
      char fingerprint[17];
      std::snprintf(fingerprint, sizeof fingerprint, "%016llx",
                    static_cast<unsigned long long>(hash64(canon.data(), canon.size())));
      Json forged = body;
      forged.set("fingerprint", fingerprint);
      const auto loaded = Planned::load(*model, to_string(forged, 1));
      ASSERT_FALSE(loaded) << to_string(calibration, 0);
      EXPECT_EQ(loaded.error().code, Code::bad_state);
      EXPECT_NE(loaded.error().message.find("profile"), std::string::npos) << loaded.error().message;
    }
  }
}

}  // namespace
}  // namespace stw
