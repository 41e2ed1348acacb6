// A run that was interrupted and continued under another plan writes the same bytes as an uninterrupted run.
// A checkpoint that is damaged, or of another run, changes nothing.
#include <gtest/gtest.h>

#include <random>

#include "tests/planner/plan/forged_plan.h"
#include "tests/src/files/forged_checkpoint.h"
#include "tests/src/small_models.h"

namespace stw::resume_test {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = 5, sequence = 24;
constexpr uint64_t steps = 6;

Schedule schedule() {
  Schedule s;
  s.rate = 3e-3;
  s.warmup = 2;
  s.total = steps;
  return s;
}

struct Case {
  const char* name;
  SmallModel config;
  Precision precision;
  int state_bits;
};

Request request_of(const Case& c, int64_t micro_batch, Recompute recompute) {
  Request r = request_for(batch_size, sequence, 2);
  r.precision = c.precision;
  r.state_bits = c.state_bits;
  r.micro_batch = micro_batch;
  r.recompute = recompute;
  return r;
}

class Resume : public testing::TestWithParam<Case> {};

TEST_P(Resume, FromEveryStepUnderAnotherPlan) {
  TemporaryDirectory folder;
  const Dataset dataset = open_tokens(folder, 6, 1500);
  const auto model = model_of(GetParam().config);
  const auto planned = plan_for(*model, request_of(GetParam(), 2, Recompute::choose));
  TrainerOptions options;
  options.seed = 99;
  OpenTrainer straight(model, planned, options);
  auto save = [&](uint64_t step) { return straight->save(folder / ("step" + std::to_string(step))); };
  ASSERT_TRUE(save(0));
  ASSERT_TRUE(straight->run(dataset, 17, steps, schedule(), [&](const StepResult&, const Progress& p) {
    return static_cast<bool>(save(p.batches));
  }));
  const Progress expected = straight->progress();
  EXPECT_EQ(expected.step, steps);

  options.seed = 1;  // replaced by the checkpoint's
  for (uint64_t step = 0; step <= steps; ++step) {
    const int64_t micro_batch = static_cast<int64_t>(step % 5) + 1;
    const auto other =
        plan_for(*model, request_of(GetParam(), micro_batch, step % 2 ? Recompute::full : Recompute::none));
    OpenTrainer trainer(model, other, options);
    const auto restored = trainer->restore(folder / ("step" + std::to_string(step)));
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(trainer->progress().batches, step);
    ASSERT_TRUE(trainer->run(dataset, 17, steps, schedule(), nullptr));
    EXPECT_EQ(differences(trainer.state(), straight.state()), "") << "from step " << step;
    const Progress p = trainer->progress();
    EXPECT_EQ(p.step, expected.step);
    EXPECT_EQ(p.tokens, expected.tokens);
    EXPECT_EQ(p.loss, expected.loss);
    // The final checkpoint equals that of the uninterrupted run, byte for byte.
    ASSERT_TRUE(trainer->save(folder / "again"));
    EXPECT_TRUE(file_bytes(folder / "again") == file_bytes(folder / "step6"));
  }
}

std::string case_name(const testing::TestParamInfo<Case>& c) { return c.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Models, Resume,
    testing::Values(Case{"gpt2_dropout_fp32", small_gpt2("0.1"), Precision::fp32, 32},
                    Case{"gpt2_dropout_bf16_8", small_gpt2("0.1"), Precision::bf16, 8},
                    Case{"llama_bf16", small_llama(), Precision::bf16, 32},
                    Case{"qwen2_fp32_8", small_qwen2(), Precision::fp32, 8},
                    Case{"llama_adapters_bf16_8", {small_llama(), adapters_of_some()}, Precision::bf16, 8},
                    Case{"bloom_bf16_8", small_bloom("0.1"), Precision::bf16, 8},
                    Case{"qwen3_bf16_8", small_qwen3(), Precision::bf16, 8}),
    case_name);

// A trainer after one step, and its checkpoint.
struct Saved {
  TemporaryDirectory folder;
  Case plain{"", small_gpt2(), Precision::fp32, 32};
  std::shared_ptr<const Model> model = model_of(plain.config);
  OpenTrainer trainer{model, plan_for(*model, request_of(plain, 2, Recompute::choose))};
  std::string path = folder / "checkpoint";
  Saved() {
    EXPECT_TRUE(trainer->step(random_batch(1, batch_size, sequence).source(), batch_size, 1e-3));
    EXPECT_TRUE(trainer->save(path));
    EXPECT_TRUE(trainer->step(random_batch(2, batch_size, sequence).source(), batch_size, 1e-3));
  }
};

TEST(Restore, FlippedBytesChangeNothing) {
  Saved saved;
  const std::string good = file_bytes(saved.path);
  const State before = saved.trainer.state();
  std::mt19937 random(8);
  std::vector<size_t> places;
  for (size_t i = 0; i < 64; ++i) places.push_back(i);                 // header and framing
  for (size_t i = 1; i <= 64; ++i) places.push_back(good.size() - i);  // the hashes
  for (int i = 0; i < 60; ++i) places.push_back(random() % good.size());
  for (size_t place : places) {
    std::string bad = good;
    bad[place] = static_cast<char>(bad[place] ^ (1 << random() % 8));
    put_file(saved.path, bad);
    const auto status = saved.trainer->restore(saved.path);
    ASSERT_FALSE(status) << "byte " << place;
    EXPECT_NE(status.error().message.find(saved.path), std::string::npos);
    EXPECT_EQ(status.error().message.find('\n'), std::string::npos);
    ASSERT_EQ(differences(saved.trainer.state(), before), "") << "byte " << place;
    ASSERT_EQ(saved.trainer->progress().step, 2u);
  }
  for (size_t size : {size_t{0}, size_t{7}, size_t{100}, good.size() / 2, good.size() - 1}) {
    put_file(saved.path, good.substr(0, size));
    ASSERT_FALSE(saved.trainer->restore(saved.path)) << size;
  }
  put_file(saved.path, good + "x");
  ASSERT_FALSE(saved.trainer->restore(saved.path));
  EXPECT_EQ(differences(saved.trainer.state(), before), "");
  put_file(saved.path, good);
  ASSERT_TRUE(saved.trainer->restore(saved.path));
  EXPECT_NE(differences(saved.trainer.state(), before), "");
  EXPECT_EQ(saved.trainer->progress().step, 1u);
}

// A checkpoint is read in pieces of 1 MiB. A real model's tensor has many pieces, the last of them short.
TEST(Restore, TensorsOfManyPiecesComeBack) {
  TemporaryDirectory folder;
  const std::string config = gpt2_with_vocabulary(9001);
  const auto model = model_of(config), other = model_of(config, 8);
  const auto planned = plan_for(*model, request_for(1, sequence, 2));
  OpenTrainer trainer(model, planned), another(other, planned);
  ASSERT_TRUE(trainer->save(folder / "checkpoint"));
  const State expected = trainer.state();
  EXPECT_GT(expected.at("transformer.wte.weight").size(), size_t{2} << 20);
  EXPECT_NE(differences(another.state(), expected), "");
  ASSERT_TRUE(another->restore(folder / "checkpoint"));
  EXPECT_EQ(differences(another.state(), expected), "");
}

// Hand-written values with valid hashes: the resumed run would count wrong, divide by zero, or write
// unreadable checkpoints.
TEST(Restore, ImpossibleValuesAreRefused) {
  Saved saved;
  const auto reader = CheckpointReader::open(saved.path);
  ASSERT_TRUE(reader);
  const auto rewrite = [&](const Json& fields) {
    return write_with_fields(*reader, fields, saved.folder / "forged");
  };
  ASSERT_TRUE(rewrite(reader->fields()));
  ASSERT_TRUE(saved.trainer->restore(saved.folder / "forged"));
  const State before = saved.trainer.state();
  const struct {
    std::vector<std::string> keys;
    Json value;
    const char* part;
  } cases[] = {{{"step"}, UINT64_MAX, "of 1 batches 18446744073709551615 were steps"},
               {{"batches"}, 2, "of 2 batches 1 were steps and 0 were skipped"},
               {{"skipped"}, 7, "and 7 were skipped"},
               {{"batches"}, UINT64_MAX, "of 18446744073709551615 batches"},
               {{"carried", "loss_scale"}, 2.0, "its loss scale is 2.0"},
               {{"carried", "loss_scale"}, 0.5, "its loss scale is 0.5"},
               {{"carried", "loss_scale"}, 1e300, "its loss scale is 1e+300"},
               {{"carried", "loss_mean"}, -1e308, "its mean loss or norm is -1e+308"},
               {{"carried", "norm_mean"}, 1e101, "its mean loss or norm is 1e+101"},
               {{"carried", "loss_variance"}, 1e308, "the variance of its loss or norm is 1e+308"},
               {{"carried", "norm_variance"}, -1.0, "the variance of its loss or norm is -1.0"}};
  for (const auto& c : cases) {
    ASSERT_TRUE(rewrite(with_value(reader->fields(), c.keys, c.value)));
    const auto status = saved.trainer->restore(saved.folder / "forged");
    ASSERT_FALSE(status) << c.part;
    EXPECT_EQ(status.error().code, Code::corrupt);
    EXPECT_NE(status.error().message.find(c.part), std::string::npos) << status.error().message;
    EXPECT_EQ(differences(saved.trainer.state(), before), "");
  }
}

// A checkpoint of adapters does not hold the base weights.
TEST(Restore, AdaptersOfAnotherModelAreRefused) {
  TemporaryDirectory folder;
  const Case c{"", {small_llama(), adapters_of_some()}, Precision::fp32, 32};
  const auto model = model_of(c.config), other = model_of(c.config, 8);
  OpenTrainer trainer(model, plan_for(*model, request_of(c, 2, Recompute::choose))),
      others(other, plan_for(*other, request_of(c, 2, Recompute::choose)));
  const std::string path = folder / "checkpoint";
  ASSERT_TRUE(trainer->save(path));
  EXPECT_LT(file_bytes(path).size(), 4 * model->graph().parameter_count());
  const State before = others.state();
  const auto status = others->restore(path);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::bad_state);
  EXPECT_NE(status.error().message.find("base: expected"), std::string::npos) << status.error().message;
  EXPECT_EQ(differences(others.state(), before), "");
  for (const SmallModel& m : {SmallModel{small_llama()}, SmallModel{small_llama(), adapters_of_all()}}) {
    const Case another{"", m, Precision::fp32, 32};
    const auto otherwise = model_of(m);
    OpenTrainer third(otherwise, plan_for(*otherwise, request_of(another, 2, Recompute::choose)));
    const auto refused = third->restore(path);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("adapters: expected "), std::string::npos)
        << refused.error().message;
  }
}

TEST(Restore, AnotherRunIsRefusedByName) {
  Saved saved;
  const struct {
    Case run;
    const char* field;
  } cases[] = {{{"", small_gpt2(), Precision::bf16, 32}, "precision"},
               {{"", small_gpt2(), Precision::fp32, 8}, "state_bits"},
               {{"", small_llama(), Precision::fp32, 32}, "architecture"},
               {{"", small_gpt2("0.1"), Precision::fp32, 32}, "model"},
               {{"",
                 R"({"model_type": "gpt2", "vocab_size": 61, "n_positions": 40, "n_embd": 40, "n_layer": 2, )"
                 R"("n_head": 4,
                "embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0})",
                 Precision::fp32, 32},
                "model"}};
  for (const auto& c : cases) {
    const auto model = model_of(c.run.config);
    OpenTrainer trainer(model, plan_for(*model, request_of(c.run, 2, Recompute::choose)));
    const State before = trainer.state();
    const auto status = trainer->restore(saved.path);
    ASSERT_FALSE(status) << c.field;
    EXPECT_EQ(status.error().code, Code::bad_state);
    EXPECT_NE(status.error().message.find(std::string(c.field) + ": expected"), std::string::npos)
        << status.error().message;
    EXPECT_EQ(differences(trainer.state(), before), "");
  }
  EXPECT_FALSE(saved.trainer->restore(saved.folder / "missing"));
  EXPECT_FALSE(saved.trainer->save(saved.folder / "no such folder/checkpoint"));
  EXPECT_EQ(saved.trainer->progress().phase, TrainerPhase::idle);
}

// The exported folder is a model: opened again it has the same weights, logits and config.
TEST(Export, OpensAgain) {
  for (Precision precision : {Precision::fp32, Precision::bf16})
    for (const std::string& config : small_models()) {
      TemporaryDirectory folder;
      Case c{"", config, precision, 32};
      const auto model = model_of(config);
      const auto planned = plan_for(*model, request_of(c, 2, Recompute::choose));
      OpenTrainer trainer(model, planned);
      ASSERT_TRUE(trainer->step(random_batch(3, batch_size, sequence).source(), batch_size, 1e-3));
      const auto status = trainer->export_model(folder / "a/b");
      ASSERT_TRUE(status) << status.error().message;
      ModelSource source;
      source.source = folder / "a/b";
      const auto again = open_model(source);
      ASSERT_TRUE(again);
      OpenTrainer other(again, plan_for(*again, request_of(c, 3, Recompute::choose)));
      const State ours = trainer.state(), theirs = other.state();
      for (int t : model->parameters())
        EXPECT_TRUE(ours.at(model->graph().at(t).name) == theirs.at(model->graph().at(t).name));
      EXPECT_TRUE(again->config().json == model->config().json);
    }
}

// The exported config gives the dtype of the exported weights, not of the original ones.
TEST(Export, NamesTheFormatOfItsWeights) {
  for (const char* key : {"dtype", "torch_dtype"})
    for (const auto& [precision, name] : {std::pair{Precision::fp32, "float32"},
                                          {Precision::bf16, "bfloat16"},
                                          {Precision::fp16, "float16"}}) {
      TemporaryDirectory folder;
      std::string config = small_llama();
      config.insert(1, std::string("\"") + key + "\": \"float64\", ");
      const auto model = model_of(config);
      Case c{"", config, precision, 32};
      OpenTrainer trainer(model, plan_for(*model, request_of(c, 2, Recompute::choose)));
      ASSERT_TRUE(trainer->export_model(folder.path()));
      ModelSource source;
      source.source = folder.path();
      const auto again = open_model(source);
      ASSERT_TRUE(again);
      EXPECT_EQ(*again->config().json.find(key), Json(name));
      EXPECT_EQ(again->config().json.members().size(), model->config().json.members().size());
    }
}

}  // namespace
}  // namespace stw::resume_test
