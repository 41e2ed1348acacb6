// Stopping a run (from its callback, from another thread, in the middle of a step) and watching it from
// outside.
#include <atomic>
#include <thread>

#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

class Cancel : public testing::Test {
 protected:
  TemporaryDirectory folder;
  Handle<stw_dataset> dataset = open_text(folder, text_of(2000));

  static stw_plan_options plan_of() {
    auto o = plan_options(4);
    o.micro_batch = 1;
    return o;
  }
  // Steps without any interruption.
  State uninterrupted(uint64_t steps) {
    World w(tiny_gpt2, plan_of());
    run(w.trainer.get(), dataset.get(), steps);
    return state_of(w);
  }
};

TEST_F(Cancel, ByTheCallback) {
  World w(tiny_gpt2, plan_of());
  std::vector<uint64_t> reported;
  auto o = run_options(6);
  o.progress_user = &reported;
  o.progress = [](void* user, const stw_progress* now) -> int32_t {
    auto& list = *static_cast<std::vector<uint64_t>*>(user);
    list.push_back(now->batches);
    EXPECT_EQ(now->struct_size, sizeof(stw_progress));
    EXPECT_GT(now->loss, 0);
    return now->batches == 2;
  };
  EXPECT_EQ(stw_trainer_run(w.trainer.get(), dataset.get(), &o, nullptr), STW_CANCELLED);
  EXPECT_EQ(reported, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(state_of(w), uninterrupted(2));
  o.progress_every = 3;
  EXPECT_EQ(stw_trainer_run(w.trainer.get(), dataset.get(), &o, nullptr), STW_OK);
  EXPECT_EQ(reported, (std::vector<uint64_t>{1, 2, 3, 6}));
  EXPECT_EQ(state_of(w), uninterrupted(6));
}

// Between two steps the trainer is idle. Whatever the callback does then, the run continues with the same
// bits.
TEST_F(Cancel, TheCallbackMayComputeAndSave) {
  struct Callback {
    stw_trainer* trainer;
    stw_dataset* dataset;
    std::string path;
    static int32_t call(void* user, const stw_progress* now) {
      const auto& self = *static_cast<Callback*>(user);
      const auto succeeds = [](stw_status status) { EXPECT_EQ(status, STW_OK); };
      double loss = 0;
      succeeds(stw_trainer_evaluate(self.trainer, self.dataset, 1, &loss, nullptr));
      succeeds(stw_trainer_save(self.trainer, self.path.c_str(), nullptr));
      const int32_t prompt = 1;
      int32_t out[4];
      uint64_t count = 0;
      auto o = sized<stw_generate_options>();
      o.prompt = &prompt;
      o.prompt_count = 1;
      o.out = out;
      o.out_capacity = 4;
      succeeds(stw_trainer_generate(self.trainer, &o, &count, nullptr));
      auto result = sized<stw_step_result>();
      succeeds(stw_trainer_wait(self.trainer, &result, nullptr));
      EXPECT_EQ(result.step, now->step);
      EXPECT_EQ(result.targets, 64u);
      // A run that the callback starts takes the next batches of the outer run. A restore sets the position.
      if (now->batches == 2) run(self.trainer, self.dataset, 3);
      succeeds(stw_trainer_restore(self.trainer, self.path.c_str(), nullptr));
      EXPECT_EQ(progress_of(self.trainer).batches, now->batches);
      EXPECT_EQ(progress_of(self.trainer).phase, uint32_t{STW_PHASE_TRAIN});
      for (const uint64_t bytes : {uint64_t{1} << 29, uint64_t{1}})  // also where no plan would fit
        EXPECT_EQ(stw_trainer_replan(self.trainer, bytes, nullptr, nullptr), STW_BAD_STATE);
      return 0;
    }
  };
  World w(tiny_gpt2, plan_of());
  Callback callback{w.trainer.get(), dataset.get(), folder / "checkpoint"};
  auto o = run_options(5);
  o.progress = Callback::call;
  o.progress_user = &callback;
  EXPECT_EQ(stw_trainer_run(w.trainer.get(), dataset.get(), &o, nullptr), STW_OK);
  EXPECT_EQ(state_of(w), uninterrupted(5));
}

TEST_F(Cancel, FromAnotherThreadWhileOthersWatch) {
  World w(tiny_gpt2, plan_of());
  std::atomic<bool> done = false;
  stw_status status = STW_OK;
  std::thread runner([&] {
    const auto o = run_options(uint64_t{1} << 40);
    status = stw_trainer_run(w.trainer.get(), dataset.get(), &o, nullptr);
    done = true;
  });
  uint64_t last = 0;
  while (last < 3) {
    const stw_progress now = progress_of(w.trainer.get());
    EXPECT_GE(now.batches, last);
    EXPECT_EQ(now.batches > 0, now.loss > 0);
    last = now.batches;
    std::this_thread::yield();
  }
  EXPECT_FALSE(done);
  stw_trainer_cancel(w.trainer.get());
  runner.join();
  EXPECT_EQ(status, STW_CANCELLED);
  const stw_progress now = progress_of(w.trainer.get());
  EXPECT_EQ(now.phase, static_cast<uint32_t>(STW_PHASE_IDLE));
  EXPECT_EQ(now.batches, now.step);
  run(w.trainer.get(), dataset.get(), now.batches + 2);
  EXPECT_EQ(state_of(w), uninterrupted(now.batches + 2));
}

// The host's executor stops a step halfway through its micro-batches: the step is undone.
TEST_F(Cancel, InTheMiddleOfAStep) {
  struct Stop {
    stw_trainer* trainer = nullptr;
    int after = 0;
    static void run(void* user, uint32_t tasks, void (*task)(void*, uint32_t), void* context) {
      auto& self = *static_cast<Stop*>(user);
      for (uint32_t i = 0; i < tasks; ++i) task(context, i);
      if (self.trainer && self.after-- == 0) stw_trainer_cancel(self.trainer);
    }
  } stop;
  auto o = sized<stw_device_options>();
  o.threads = 2;
  o.run = Stop::run;
  o.run_user = &stop;
  World w(tiny_gpt2, plan_of(), nullptr,
          make<stw_device>([&](stw_device** out, stw_error* e) { return stw_device_open(out, &o, e); }));
  TokenBatch batch(4, 16);
  step(w.trainer.get(), batch.batch());
  const State before = state_of(w);
  stop.trainer = w.trainer.get();
  for (const int after : {0, 5, 30}) {
    stop.after = after;
    stw_error error = sized<stw_error>();
    EXPECT_EQ(stw_trainer_step(w.trainer.get(), batch.batch(), &error), STW_CANCELLED) << error.message;
    EXPECT_EQ(state_of(w), before);
    EXPECT_EQ(progress_of(w.trainer.get()).phase, static_cast<uint32_t>(STW_PHASE_IDLE));
    stop.after = -1;
  }
  stop.trainer = nullptr;
  step(w.trainer.get(), batch.batch());
  World other(tiny_gpt2, plan_of());
  step(other.trainer.get(), batch.batch());
  step(other.trainer.get(), batch.batch());
  EXPECT_EQ(state_of(w), state_of(other));
}

TEST_F(Cancel, TwoTrainersOnOneDeviceAtOnce) {
  const State expected = uninterrupted(4);
  const auto device = open_device();
  const auto model = make_model(tiny_gpt2);
  const auto plan = make_plan(model.get(), plan_of());
  std::vector<Handle<stw_trainer>> trainers;
  std::vector<TemporaryDirectory> folders(2);
  for (int i = 0; i < 2; ++i)
    trainers.push_back(make<stw_trainer>([&](stw_trainer** out, stw_error* e) {
      return stw_trainer_create(out, device.get(), model.get(), plan.get(), nullptr, e);
    }));
  const auto train = [&](size_t i) {
    const auto data = open_text(folders[i], text_of(2000));
    run(trainers[i].get(), data.get(), 4);
  };
  std::thread other(train, 1);
  train(0);
  other.join();
  for (const auto& trainer : trainers)
    for (size_t i = 0; i < expected.parameters.size(); ++i) {
      const auto view = view_of(trainer.get(), i);
      EXPECT_EQ(
          std::memcmp(view->dl_tensor.data, expected.parameters[i].data(), expected.parameters[i].size() * 4),
          0);
    }
}

}  // namespace
}  // namespace stw::api_test
