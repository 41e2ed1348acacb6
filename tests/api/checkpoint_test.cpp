// Saving and restoring: an interrupted run has the bits of an uninterrupted one under any budget. Everything
// else is refused, and changes nothing.
#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

class Checkpoint : public testing::Test {
 protected:
  TemporaryDirectory folder;
  Handle<stw_dataset> dataset = open_text(folder, text_of(2000));
  std::string path = folder / "checkpoint";

  void save(const World& w) {
    stw_error error = sized<stw_error>();
    must(stw_trainer_save(w.trainer.get(), path.c_str(), &error), error);
  }
  void restore(const World& w) {
    stw_error error = sized<stw_error>();
    must(stw_trainer_restore(w.trainer.get(), path.c_str(), &error), error);
  }
  // The checkpoint's bytes: everything that a step changes, in any precision.
  std::string bytes_of(const World& w) {
    save(w);
    return file_bytes(path);
  }
  void refused(const World& w, stw_status expected, const std::string& field) {
    const State before = state_of(w);
    stw_error error = sized<stw_error>();
    EXPECT_EQ(stw_trainer_restore(w.trainer.get(), path.c_str(), &error), expected) << error.message;
    EXPECT_NE(std::string(error.message).find(field), std::string::npos) << error.message;
    EXPECT_EQ(state_of(w), before);
  }
};

TEST_F(Checkpoint, ANonFiniteLossStaysNonFinite) {
  auto o = plan_options();
  o.inputs = STW_INPUT_WEIGHTS;
  World first(tiny_gpt2, o), second(tiny_gpt2, o);
  TokenBatch batch(4, 16);
  batch.weights.assign(64, 3e38f);
  EXPECT_EQ(step(first.trainer.get(), batch.batch()).skip_reason, static_cast<uint32_t>(STW_SKIP_NOT_FINITE));
  const std::string saved = bytes_of(first);
  restore(second);
  EXPECT_FALSE(std::isfinite(progress_of(second.trainer.get()).loss));
  EXPECT_TRUE(bytes_of(second) == saved);
}

const std::string with_dropout = R"({"architectures":["GPT2LMHeadModel"],"model_type":"gpt2","vocab_size":256,
  "n_positions":16,"n_embd":32,"n_layer":2,"n_head":2})";  // dropout 0.1 everywhere

TEST_F(Checkpoint, InterruptedIsUninterruptedUnderAnyBudget) {
  for (const std::string& config : {tiny_llama, with_dropout})
    for (const uint32_t precision : {STW_PRECISION_FP32, STW_PRECISION_BF16})
      for (const uint32_t bits : {STW_STATES_32, STW_STATES_8}) {
        auto o = plan_options(6);
        o.precision = precision;
        o.state_bits = bits;
        World whole(config, o), first(config, o);
        run(whole.trainer.get(), dataset.get(), 6);
        const std::string expected = bytes_of(whole);
        run(first.trainer.get(), dataset.get(), 3);
        save(first);
        // Another trainer, seed, micro-batch, recompute choice and number of threads; the tightest budget.
        auto seeded = sized<stw_trainer_options>();
        seeded.seed = 99;
        std::vector<stw_plan_options> plans(3, o);
        plans[0].micro_batch = 4;
        plans[1].recompute = STW_RECOMPUTE_FULL;
        plans[1].threads = 1;
        plans[2].memory_bytes = info_of(first.plan.get()).minimum_bytes;
        for (const stw_plan_options& plan : plans) {
          World second(config, plan, &seeded);
          const std::string saved = file_bytes(path);
          restore(second);
          EXPECT_EQ(progress_of(second.trainer.get()).step, 3u);
          run(second.trainer.get(), dataset.get(), 6);
          EXPECT_EQ(bytes_of(second) == expected, true) << precision << ' ' << bits;
          put_file(path, saved);
        }
      }
}

TEST_F(Checkpoint, IsRestoredByTheTrainerThatWroteIt) {
  World w(tiny_gpt2, plan_options());
  run(w.trainer.get(), dataset.get(), 2);
  save(w);
  const State then = state_of(w);
  run(w.trainer.get(), dataset.get(), 5);
  EXPECT_NE(state_of(w), then);
  restore(w);
  EXPECT_EQ(state_of(w), then);
}

TEST_F(Checkpoint, OfOtherNumericsOrModelIsRefused) {
  World w(tiny_gpt2, plan_options());
  run(w.trainer.get(), dataset.get(), 1);
  auto o = plan_options();
  o.state_bits = STW_STATES_8;
  save(World(tiny_gpt2, o));
  refused(w, STW_BAD_STATE, "state_bits");
  o = plan_options();
  o.precision = STW_PRECISION_BF16;
  save(World(tiny_gpt2, o));
  refused(w, STW_BAD_STATE, "precision");
  save(World(tiny_llama, plan_options()));
  refused(w, STW_BAD_STATE, "architecture");
  std::string other = tiny_gpt2;
  other.replace(other.find("\"n_layer\":2"), 11, "\"n_layer\":3");
  save(World(other, plan_options()));
  refused(w, STW_BAD_STATE, " (hashes of its layers, sizes, dropout and what is trained)");
}

TEST_F(Checkpoint, ThatIsDamagedIsRefused) {
  World w(tiny_gpt2, plan_options());
  run(w.trainer.get(), dataset.get(), 1);
  const std::string good = bytes_of(w);
  run(w.trainer.get(), dataset.get(), 2);
  for (size_t k = 0; k < 40; ++k) {
    std::string bad = good;
    bad[k < 20 ? k * 13 : bad.size() - 1 - (k - 20) * (good.size() / 21)] ^= 0x10;
    put_file(path, bad);
    stw_error error = sized<stw_error>();
    const State before = state_of(w);
    const stw_status status = stw_trainer_restore(w.trainer.get(), path.c_str(), &error);
    EXPECT_EQ(stw_checkpoint_verify(path.c_str(), nullptr), status) << k;
    EXPECT_TRUE(status == STW_CORRUPT || status == STW_UNSUPPORTED)
        << k << ": " << status << ' ' << error.message;
    EXPECT_NE(std::string(error.message).find(path), std::string::npos) << error.message;
    EXPECT_EQ(state_of(w), before);
  }
  for (const size_t size : {size_t{0}, size_t{10}, good.size() / 2, good.size() - 1}) {
    put_file(path, good.substr(0, size));
    refused(w, STW_CORRUPT, path);
  }
  put_file(path, good + "x");
  refused(w, STW_CORRUPT, path);
  put_file(path, good);
  EXPECT_EQ(stw_checkpoint_verify(path.c_str(), nullptr), STW_OK);
  EXPECT_EQ(stw_checkpoint_verify((path + ".none").c_str(), nullptr), STW_IO_ERROR);
  EXPECT_EQ(stw_checkpoint_verify(nullptr, nullptr), STW_BAD_ARGUMENT);
  restore(w);
  EXPECT_EQ(progress_of(w.trainer.get()).step, 1u);
}

TEST_F(Checkpoint, ThatCannotBeWrittenLeavesTheOldOne) {
  World w(tiny_gpt2, plan_options());
  const std::string good = bytes_of(w);
  run(w.trainer.get(), dataset.get(), 1);
  const std::string folder_path = folder / "taken";
  std::filesystem::create_directory(folder_path);
  EXPECT_EQ(stw_trainer_save(w.trainer.get(), folder_path.c_str(), nullptr), STW_IO_ERROR);
  EXPECT_EQ(file_bytes(path), good);
  size_t entries = folder.entries();
  EXPECT_EQ(entries, 3u) << "text, checkpoint, the folder: no temporary file is left";
}

TEST_F(Checkpoint, ExportedModelsAreReadBack) {
  for (const std::string& config : {tiny_gpt2, tiny_llama}) {
    World w(config, plan_options());
    run(w.trainer.get(), dataset.get(), 2);
    const std::string model = folder / "model";
    stw_error error = sized<stw_error>();
    must(stw_trainer_export_model(w.trainer.get(), model.c_str(), &error), error);
    World again(model, plan_options());
    auto info = sized<stw_model_info>();
    ASSERT_EQ(stw_model_query(again.model.get(), &info), STW_OK);
    EXPECT_EQ(info.has_weights, 1u);
    EXPECT_EQ(values_of(again), values_of(w));
    double a = 0, b = 1;
    must(stw_trainer_evaluate(w.trainer.get(), dataset.get(), 2, &a, &error), error);
    must(stw_trainer_evaluate(again.trainer.get(), dataset.get(), 2, &b, &error), error);
    EXPECT_EQ(a, b);
    EXPECT_EQ(progress_of(w.trainer.get()).evaluation_loss, a);
  }
}

}  // namespace
}  // namespace stw::api_test
