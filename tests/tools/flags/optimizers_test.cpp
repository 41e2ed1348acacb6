// The command's table of optimizers agrees with the library: the optimizers, the settings of each, and the
// default values of the settings.
#include "flags/optimizers.h"

#include "tests/api/harness.h"

namespace command {
namespace {

using namespace stw::api_test;

using Options = stw_trainer_options;

void set_nesterov(Options& o, float value) { o.nesterov = value != 0; }
template <float Options::*field, uint32_t bit>
void set(Options& o, float value) {
  o.*field = value;
  o.set_mask |= bit;
}

constexpr struct {
  const char* name;
  OptimizerSetting of;
  void (*set)(Options&, float);
} settings[] = {
    {"beta1", &OptimizerRow::beta1, set<&Options::beta1, STW_SET_BETA1>},
    {"beta2", &OptimizerRow::beta2, set<&Options::beta2, STW_SET_BETA2>},
    {"momentum", &OptimizerRow::momentum, set<&Options::momentum, STW_SET_MOMENTUM>},
    {"nesterov", &OptimizerRow::nesterov, set_nesterov},
    {"weight_decay", &OptimizerRow::weight_decay, set<&Options::weight_decay, STW_SET_WEIGHT_DECAY>},
};

stw_plan_options plan_of(const OptimizerRow& row) {
  stw_plan_options o = plan_options();
  o.optimizer = optimizer_of(row.name);
  return o;
}

// The parameters after some steps at the default rate, which is stored in `rate`.
std::vector<std::vector<float>> trained(const OptimizerRow& row, const Options& options, double& rate) {
  stw::TemporaryDirectory folder;
  const auto dataset = open_text(folder, text_of(2000));
  const World w(tiny_llama, plan_of(row), &options);
  auto o = sized<stw_run_options>();
  o.until = 4;
  o.schedule = STW_SCHEDULE_CONSTANT;
  auto error = sized<stw_error>();
  must(stw_trainer_run(w.trainer.get(), dataset.get(), &o, &error), error);
  rate = progress_of(w.trainer.get()).learning_rate;
  return values_of(w);
}

TEST(Optimizers, TheCommandHasAllOptimizersOfTheLibrary) {
  for (const OptimizerRow& row : optimizer_rows) {
    const auto plan = make_plan(make_model(tiny_llama).get(), plan_of(row));
    const std::string json = stw_plan_json(plan.get());
    EXPECT_NE(json.find("\"optimizer\": \"" + std::string(row.name) + "\""), std::string::npos)
        << row.name << "\n"
        << json.substr(0, 2000);
  }
  stw_plan_options o = plan_options();
  o.optimizer = std::size(optimizer_rows);
  stw_plan* none = nullptr;
  EXPECT_EQ(stw_plan_create(&none, make_model(tiny_llama).get(), &o, nullptr), STW_UNSUPPORTED);
}

TEST(Optimizers, TakeTheSettingsOfTheCommandsTable) {
  const auto device = open_device();
  const auto model = make_model(tiny_llama);
  for (const OptimizerRow& row : optimizer_rows) {
    const auto plan = make_plan(model.get(), plan_of(row));
    for (const auto& setting : settings) {
      auto options = sized<Options>();
      setting.set(options, 0.5f);
      stw_trainer* made = nullptr;
      const stw_status status =
          stw_trainer_create(&made, device.get(), model.get(), plan.get(), &options, nullptr);
      const Handle<stw_trainer> trainer(made);
      EXPECT_EQ(status, row.*setting.of ? STW_OK : STW_BAD_ARGUMENT) << row.name << ", " << setting.name;
    }
  }
}

TEST(Optimizers, TheCommandHasTheLibrarysDefaults) {
  for (const OptimizerRow& row : optimizer_rows) {
    double rate = 0;
    const auto by_default = trained(row, sized<Options>(), rate);
    EXPECT_EQ(rate, row.learning_rate) << row.name;
    for (const auto& setting : settings) {
      const std::optional<double> value = row.*setting.of;
      if (!value) continue;
      auto given = sized<Options>(), other = given;
      setting.set(given, static_cast<float>(*value));
      setting.set(other, *value == 0 ? 0.5f : static_cast<float>(*value) * 0.9f);
      EXPECT_EQ(trained(row, given, rate), by_default) << row.name << ", " << setting.name;
      EXPECT_NE(trained(row, other, rate), by_default) << row.name << ", " << setting.name;
    }
  }
}

TEST(Optimizers, TextsNameEveryOptimizer) {
  EXPECT_EQ(optimizers_with(&OptimizerRow::momentum), "sgd, muon");
  EXPECT_EQ(defaults_of(&OptimizerRow::beta2), "adamw, muon 0.95; lion 0.99");
  EXPECT_EQ(optimizer_of("muon"), uint32_t{STW_OPTIMIZER_MUON});
  EXPECT_EQ(optimizer_of(""), uint32_t{STW_OPTIMIZER_ADAMW});
}

}  // namespace
}  // namespace command
