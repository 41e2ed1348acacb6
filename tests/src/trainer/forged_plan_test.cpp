// Forged plan files with a valid fingerprint. Each one is refused, or training with it gives the same
// bits as any other plan for its model, numerics and batch.
#include "tests/planner/plan/forged_plan.h"

#include <map>
#include <random>

#include "planner/plan/plan_file.h"
#include "tests/src/small_models.h"

namespace stw::forged_plan_test {
namespace {

using namespace testing_tools;

#ifdef STW_SANITIZED
constexpr int rounds = 150;
#else
constexpr int rounds = 1200;
#endif
constexpr int64_t batch = 5, sequence = 40;

class Forger {
 public:
  explicit Forger(uint64_t seed) : random_(seed) {}
  size_t below(size_t count) { return static_cast<size_t>(random_() % count); }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return list.begin()[below(list.size())];
  }

  Json change(const Json& plan) {
    switch (below(8)) {
      case 0: return with_value(plan, {"micro_batch"}, whole(7));
      case 1: return with_value(plan, {"loss_chunks"}, one_of<int64_t>({0, 1, 2, 3, 8, 40, 200, 1024, 1025}));
      case 2:
        return with_value(plan, {"recompute"}, list([&] {
                            Json names = Json::array();
                            for (size_t n = below(6); n > 0; --n)
                              names.push(one_of({"attn_norm", "qkv", "qkv_rope", "attention", "attn_out",
                                                 "attn_dropout", "attn_residual", "ffn_norm", "ffn_up",
                                                 "gelu", "gate_up", "swiglu", "ffn_out", "ffn_dropout"}));
                            return run().set("tensors", std::move(names));
                          }));
      case 3:
        return with_value(plan, {"tiles"}, list([&] {
                            return run().set("rows", one_of<int64_t>({-64, 0, 64, 100, 128, 256, 1024}));
                          }));
      case 4:
        return with_value(
            plan, {"offload"}, list([&] {
              const bool others = below(2) == 0;
              return Json::object()
                  .set("tensors", one_of({"optimizer", "masters", "gradients", "weights", "inputs"}))
                  .set("blocks", below(4) == 0 ? Json::array() : Json(Json::Array{0, others ? 2 : whole(4)}))
                  .set("outside_blocks", others);
            }));
      case 5:
        return with_value(plan,
                          {"request", one_of({"global_batch", "sequence", "threads", "micro_batch",
                                              "state_bits", "host_bytes"})},
                          whole(9));
      case 6: return with_value(plan, {"numerics", one_of({"fused_update", "exact"})}, below(2) == 0);
      default: {
        const char* key = one_of({"precision", "optimizer", "master", "gradients", "kernels", "attention"});
        return with_value(
            plan, {"numerics", key},
            one_of({"fp32", "bf16", "fp16", "none", "split", "split8", "stochastic", "adamw", "sgd", "lion",
                    "muon", "adafactor", "portable", "tensor", "wgmma", "own", "cudnn"}));
      }
    }
  }

 private:
  int64_t whole(size_t below_this) { return static_cast<int64_t>(below(below_this + 1)) - 1; }
  Json run() { return Json::object().set("blocks", Json::Array{whole(4), whole(4)}); }
  template <class Make>
  Json list(const Make& make) {
    Json all = Json::array();
    for (size_t n = 1 + below(2); n > 0; --n) all.push(make());
    return all;
  }

  std::mt19937_64 random_;
};

// Loads a plan. If it is refused for its figures of memory, corrects these and loads it again, so that the
// forged field is tested too.
Result<std::shared_ptr<const Planned>> load(const Model& model, Json plan) {
  for (;;) {
    auto loaded = Planned::load(model, with_fingerprint(plan));
    if (loaded) return loaded;
    const std::string& message = loaded.error().message;
    const bool arena = message.find("its arena has") != std::string::npos,
               host = message.find("in host memory, its programs") != std::string::npos;
    if (!arena && !host) return loaded;
    const size_t end = std::min(message.find(": it was made"), message.size());  // after the number
    const std::string number = message.substr(message.find_last_of(' ', end) + 1);
    const auto bytes = static_cast<int64_t>(std::stoull(number));
    plan = with_value(plan, {"bytes", arena ? "arena" : "host"}, bytes);
    if (arena) plan = with_value(plan, {"bytes", "peak"}, bytes);
  }
}

// Loss and norm of two steps, and the loss of an evaluation.
std::vector<double> trained(const std::shared_ptr<const Model>& model,
                            const std::shared_ptr<const Planned>& planned, const Dataset& dataset) {
  TrainerOptions options;
  options.clip_norm = planned->plan.numerics.fused_update ? 0 : 1;
  OpenTrainer trainer(model, planned, options);
  const Request& r = planned->plan.request;
  const GlobalBatch tokens = random_batch(3, r.global_batch, r.sequence);
  std::vector<double> figures;
  for (int step = 0; step < 2; ++step) {
    const auto result = trainer->step(tokens.source(), tokens.samples(), 3e-3);
    if (!result) {
      ADD_FAILURE() << result.error().message;
      return figures;
    }
    figures.insert(figures.end(), {result->loss, result->grad_norm, static_cast<double>(result->skip)});
  }
  const auto loss = trainer->evaluate(dataset, 1);
  EXPECT_TRUE(loss);
  figures.push_back(loss ? *loss : 0);
  return figures;
}

TEST(ForgedPlan, IsRefusedOrTrainsTheSameBits) {
  TemporaryDirectory folder;
  const Dataset dataset = open_tokens(folder, 5, 4000);
  std::vector<std::pair<std::shared_ptr<const Model>, Json>> plans;
  for (const std::string& config : {small_gpt2("0.1"), small_llama()}) {
    const auto model = model_of(config);
    for (int kind = 0; kind < 5; ++kind) {
      Request r = request_for(batch, sequence, 2);
      if (kind == 1) r.recompute = Recompute::full, r.micro_batch = 2;
      if (kind == 2) r.precision = Precision::bf16, r.gradients = Gradients::bf16, r.state_bits = 8;
      if (kind == 3) r.fused_update = true;
      if (kind == 4) r.host_bytes = uint64_t{1} << 20, r.precision = Precision::bf16;
      plans.emplace_back(model, *parse_json(plan_for(*model, r)->json));
    }
  }
  Forger forger(11);
  std::map<std::string, std::vector<double>> figures_of;  // by model, numerics and batch
  int refused = 0, compared = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto& [model, plan] = plans[forger.below(plans.size())];
    Json forged = plan;
    for (size_t changes = 1 + forger.below(2); changes > 0; --changes) forged = forger.change(forged);
    SCOPED_TRACE(to_string(forged, 0));
    const auto loaded = load(*model, forged);
    if (!loaded) {
      refused += 1;
      EXPECT_NE(loaded.error().code, Code::internal) << loaded.error().message;
      continue;
    }
    const auto again = Planned::load(*model, (*loaded)->json);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ((*again)->json, (*loaded)->json);
    const Plan& p = (*loaded)->plan;
    if (!p.fits) continue;
    const Json numerics = with_value(*parse_json((*loaded)->json)->find("numerics"), {"states_reason"}, "");
    const std::string key = p.architecture + to_string(numerics, 0) + std::to_string(p.request.global_batch) +
                            "x" + std::to_string(p.request.sequence);
    const std::vector<double> figures = trained(model, *loaded, dataset);
    const auto [known, is_new] = figures_of.emplace(key, figures);
    compared += !is_new;
    EXPECT_EQ(known->second, figures);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(refused, rounds / 5);
  EXPECT_GT(compared, rounds / 20);
  RecordProperty("compared", compared);
}

}  // namespace
}  // namespace stw::forged_plan_test
