// Calibration times a whole step. However it ends, it changes no byte of the trainer's state.
#include "planner/device/calibration.h"

#include <atomic>
#include <limits>
#include <thread>

#include "planner/device/profile_file.h"
#include "tests/src/small_models.h"
#include "tests/src/temporary_directory.h"

namespace stw::calibrate_test {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = 7, sequence = 33;

Request request_of(Precision precision, int bits, int64_t micro_batch, int threads = 2) {
  Request r = request_for(batch_size, sequence, threads);
  r.precision = precision;
  r.state_bits = bits;
  r.micro_batch = micro_batch;
  return r;
}

std::vector<OpKind> kinds_of_a_step(const Programs& programs) {
  std::vector<bool> there(op_kind_count);
  for (const Program* p : {&programs.micro_first, &programs.update})
    for (const Instruction& i : p->instructions) there[static_cast<size_t>(i.kind)] = true;
  std::vector<OpKind> kinds;
  for (size_t k = 0; k < op_kind_count; ++k)
    if (there[k]) kinds.push_back(static_cast<OpKind>(k));
  return kinds;
}

TEST(Calibrate, TimesEveryKindOfTheStepAndLeavesEveryByte) {
  for (const std::string& config : {small_gpt2("0.1"), small_llama()})
    for (const auto& [precision, bits, micro_batch] :
         {std::tuple{Precision::fp32, 32, 3}, {Precision::bf16, 8, 7}, {Precision::fp32, 8, 1}}) {
      const auto model = model_of(config);
      const auto planned = plan_for(*model, request_of(precision, bits, micro_batch));
      bool hooked = false;
      TrainerOptions options;
      options.gradient_hook = [&](const GradientView&) { return hooked = true; };
      OpenTrainer trainer(model, planned, options);
      const std::string before = trainer.bytes();
      const auto profile = trainer->calibrate();
      ASSERT_TRUE(profile) << profile.error().message;
      EXPECT_TRUE(trainer.bytes() == before);
      EXPECT_FALSE(hooked);
      EXPECT_EQ(trainer->progress().phase, TrainerPhase::idle);
      EXPECT_EQ(trainer->progress().batches, 0u);

      EXPECT_STREQ(profile->name, "cpu");
      EXPECT_EQ(profile->calibration.threads, 2);
      EXPECT_EQ(profile->calibration.precision, precision);
      uint64_t sum = 0;
      size_t timed = 0;
      for (const Calibration::Op& op : profile->calibration.ops) {
        sum += op.nanoseconds;
        timed += op.permille > 0;
      }
      const std::vector<OpKind> kinds = kinds_of_a_step(planned->programs);
      EXPECT_EQ(timed, kinds.size());
      for (OpKind kind : kinds)
        EXPECT_GT(profile->calibration.ops[static_cast<size_t>(kind)].permille, 0u) << op_row(kind).name;
      // The ops make up the whole step, except for readings of the clock between them. The limits are wide,
      // because each op's time is a median of its own, on a machine that may be busy.
      EXPECT_GT(sum, profile->calibration.step_nanoseconds / 4);
      EXPECT_LT(sum, profile->calibration.step_nanoseconds * 2);
      EXPECT_TRUE(profile_from_json(profile_to_json(*profile)));

      // Training continues as if there had been no calibration.
      OpenTrainer straight(model, planned);
      const GlobalBatch batch = random_batch(4, batch_size, sequence);
      options.gradient_hook = nullptr;
      for (auto* t : {&straight, &trainer}) ASSERT_TRUE((*t)->step(batch.source(), batch_size, 1e-3));
      EXPECT_EQ(differences(trainer.state(), straight.state()), "");
      EXPECT_TRUE(hooked);
    }
}

// Copies are timed like other ops.
TEST(Calibrate, TimesOffloadedCopies) {
  const auto model = model_of(small_llama());
  const Request request = request_of(Precision::bf16, 8, 2);
  Decisions d = plan_for(*model, request)->plan.decisions;
  d.offload.parts = {4, 4, 3, 3, 3};
  const auto planned = plan_with(*model, request, d);
  auto trainer = trainer_for(model, planned);
  const auto profile = trainer->calibrate();
  ASSERT_TRUE(profile) << profile.error().message;
  for (OpKind kind : {OpKind::fetch, OpKind::store})
    EXPECT_GT(profile->calibration.ops[static_cast<size_t>(kind)].permille, 0u);
  // The weights in host memory are restored too.
  auto straight = trainer_for(model, planned);
  const GlobalBatch batch = random_batch(4, batch_size, sequence);
  const auto one = trainer->step(batch.source(), batch_size, 1e-3),
             other = straight->step(batch.source(), batch_size, 1e-3);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->loss, other->loss);
  EXPECT_EQ(one->grad_norm, other->grad_norm);
}

TEST(Calibrate, OnlyATrainerAsItWasCreated) {
  const auto model = model_of(small_llama());
  const auto planned = plan_for(*model, request_of(Precision::fp32, 32, 3));
  TemporaryDirectory folder;
  const float value = 1;
  auto refused = [](OpenTrainer& trainer) {
    const std::string before = trainer.bytes();
    const auto profile = trainer->calibrate();
    ASSERT_FALSE(profile);
    EXPECT_EQ(profile.error().code, Code::bad_state);
    EXPECT_TRUE(trainer.bytes() == before);
  };
  OpenTrainer stepped(model, planned), restored(model, planned), written(model, planned);
  ASSERT_TRUE(stepped->step(random_batch(4, batch_size, sequence).source(), batch_size, 1e-3));
  ASSERT_TRUE(stepped->save(folder / "checkpoint"));
  ASSERT_TRUE(restored->restore(folder / "checkpoint"));
  written->write_parameter(0, 0, &value, 1);
  for (OpenTrainer* t : {&stepped, &restored, &written}) refused(*t);
  OpenTrainer again(model, planned);
  ASSERT_TRUE(again->calibrate());
  ASSERT_TRUE(again->calibrate());
}

TEST(Calibrate, CancelledItLeavesEveryByte) {
  const auto model = model_of(small_llama());
  const auto planned = plan_for(*model, request_of(Precision::fp32, 32, 1));
  OpenTrainer trainer(model, planned);
  const std::string before = trainer.bytes();
  trainer->cancel();  // a cancel before the call is not lost
  auto profile = trainer->calibrate();
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().code, Code::cancelled);
  EXPECT_TRUE(trainer.bytes() == before);
  // Repeats the call until a cancel comes while it runs.
  for (int tries = 0; tries < 100; ++tries) {
    std::atomic<bool> done = false;
    bool sent = false;
    std::thread other([&] {
      while (!done && trainer->progress().phase != TrainerPhase::calibrate) std::this_thread::yield();
      if (done) return;
      trainer->cancel();
      sent = true;
    });
    profile = trainer->calibrate();
    done = true;
    other.join();
    if (!profile) break;
    EXPECT_EQ(static_cast<bool>(trainer->calibrate()), !sent) << "the cancel that came too late";
  }
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().code, Code::cancelled);
  EXPECT_TRUE(trainer.bytes() == before);
  EXPECT_EQ(trainer->progress().phase, TrainerPhase::idle);
  EXPECT_TRUE(trainer->calibrate());
}

// A model without a finite loss cannot be timed, as its updates are skipped.
TEST(Calibrate, NonFiniteWeightsAreReported) {
  const auto model = model_of(small_gpt2());
  const auto planned = plan_for(*model, request_of(Precision::fp32, 32, 3));
  TemporaryDirectory folder;
  {
    OpenTrainer trainer(model, planned);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    trainer->write_parameter(2, 5, &nan, 1);
    ASSERT_TRUE(trainer->export_model(folder.path()));
  }
  ModelSource source;
  source.source = folder.path();
  OpenTrainer trainer(open_model(source), planned);
  const std::string before = trainer.bytes();
  const auto profile = trainer->calibrate();
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().code, Code::non_finite);
  EXPECT_TRUE(trainer.bytes() == before);
}

TEST(Calibrate, MissingWeightsAreReportedAndReadAgain) {
  const auto model = model_of(small_gpt2());
  const auto planned = plan_for(*model, request_of(Precision::fp32, 32, 3));
  TemporaryDirectory folder;
  const std::string weights = folder / "model.safetensors";
  {
    OpenTrainer trainer(model, planned);
    ASSERT_TRUE(trainer->export_model(folder.path()));
    ASSERT_TRUE(trainer->save(folder / "checkpoint"));
  }
  ModelSource source;
  source.source = folder.path();
  OpenTrainer trainer(open_model(source), planned);
  const std::string before = trainer.bytes(), whole = file_bytes(weights);
  std::filesystem::resize_file(weights, whole.size() / 2);
  auto profile = trainer->calibrate();
  ASSERT_FALSE(profile);
  const GlobalBatch batch = random_batch(4, batch_size, sequence);
  const auto step = trainer->step(batch.source(), batch_size, 1e-3);
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().code, Code::bad_state);
  // Once the file is whole again, another calibration and a restore both repair it.
  put_file(weights, whole);
  ASSERT_TRUE(trainer->calibrate());
  EXPECT_TRUE(trainer.bytes() == before);
  std::filesystem::resize_file(weights, whole.size() / 2);
  ASSERT_FALSE(trainer->calibrate());
  ASSERT_TRUE(trainer->restore(folder / "checkpoint"));
  EXPECT_TRUE(trainer->step(batch.source(), batch_size, 1e-3));
}

}  // namespace
}  // namespace stw::calibrate_test
