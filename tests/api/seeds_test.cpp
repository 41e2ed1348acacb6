// Seeds: the default is 1337, and with its mask bit 0 is a seed like any other.
#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

// The result of a run with a seed. `mask`: 0 or the field's bit.
using Made = Values;

std::string dropping_gpt2() {
  std::string config = tiny_gpt2;
  const std::string rate = "\"resid_pdrop\":0.0";
  config.replace(config.find(rate), rate.size(), "\"resid_pdrop\":0.5");
  return config;
}

Made weights(uint32_t mask, uint64_t seed) {
  auto o = sized<stw_model_options>();
  o.config_json = tiny_gpt2.data();
  o.config_json_size = tiny_gpt2.size();
  o.set_mask = mask;
  o.seed = seed;
  World w(tiny_gpt2, plan_options());
  const auto model =
      make<stw_model>([&](stw_model** out, stw_error* e) { return stw_model_create(out, &o, e); });
  w.trainer = make<stw_trainer>([&](stw_trainer** out, stw_error* e) {
    return stw_trainer_create(out, w.device.get(), model.get(), w.plan.get(), nullptr, e);
  });
  return values_of(w);
}

Made trained_on_windows(uint32_t mask, uint64_t seed) {
  const TemporaryDirectory folder;
  const std::string path = folder / "text.txt";
  put_file(path, text_of(3000));
  auto o = sized<stw_dataset_options>();
  o.path = path.c_str();
  o.vocabulary = 256;
  o.sequence = 16;
  o.set_mask = mask;
  o.seed = seed;
  const World w(tiny_gpt2, plan_options());
  run(w.trainer.get(), open_dataset(o).get(), 1);
  return values_of(w);
}

Made trained_with_dropout(uint32_t mask, uint64_t seed) {
  auto o = sized<stw_trainer_options>();
  o.set_mask = mask;
  o.seed = seed;
  const World w(dropping_gpt2(), plan_options(), &o);
  TokenBatch batch(4, 16);
  step(w.trainer.get(), batch.batch());
  return values_of(w);
}

Made generated(uint32_t mask, uint64_t seed) {
  const World w(tiny_gpt2, plan_options());
  const int32_t prompt = 1;
  int32_t out[12] = {};
  uint64_t count = 0;
  auto o = sized<stw_generate_options>();
  o.prompt = &prompt;
  o.prompt_count = 1;
  o.out = out;
  o.out_capacity = 12;
  o.temperature = 2;
  o.set_mask = mask;
  o.seed = seed;
  stw_error error = sized<stw_error>();
  must(stw_trainer_generate(w.trainer.get(), &o, &count, &error), error);
  Made tokens;
  tokens.emplace_back(out, out + count);
  return tokens;
}

TEST(Seeds, ZeroIsASeedIfItsBitIsSet) {
  const struct {
    const char* name;
    Made (*make)(uint32_t, uint64_t);
    uint32_t bit;
  } fields[] = {{"model", weights, STW_SET_MODEL_SEED},
                {"dataset", trained_on_windows, STW_SET_DATASET_SEED},
                {"trainer", trained_with_dropout, STW_SET_TRAINER_SEED},
                {"generate", generated, STW_SET_GENERATE_SEED}};
  for (const auto& [name, make, bit] : fields) {
    const Made unset = make(0, 0), zero = make(bit, 0);
    EXPECT_EQ(unset, make(0, 1337)) << name;
    EXPECT_EQ(unset, make(bit, 1337)) << name;
    EXPECT_NE(unset, zero) << name;
    EXPECT_EQ(zero, make(bit, 0)) << name;
    EXPECT_EQ(make(0, 7), make(bit, 7)) << name;
    EXPECT_NE(make(0, 7), zero) << name;
  }
}

TEST(Seeds, UnknownBitsAreRefused) {
  auto o = sized<stw_generate_options>();
  o.set_mask = 2;
  const World w(tiny_gpt2, plan_options());
  uint64_t count = 0;
  stw_error error = sized<stw_error>();
  EXPECT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, &error), STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message, "generate options.set_mask has bits that this library does not know");
  o = sized<stw_generate_options>();
  o.reserved = 1;
  EXPECT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_BAD_ARGUMENT);
}

}  // namespace
}  // namespace stw::api_test
