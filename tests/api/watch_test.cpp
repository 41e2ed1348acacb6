// Watches: their notifications for every kind of long call, and the state after a cancel.
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <map>
#include <thread>

#include "tests/api/harness.h"

extern "C" void* stw_test_call_in_c(void* made);  // unwound.c

namespace stw::api_test {

struct WatchCloser {
  void operator()(stw_watch* p) const { stw_watch_destroy(p); }
};

namespace {

// Records every notification, and cancels at one of them.
struct Watcher {
  std::vector<stw_watch_info> notices;
  size_t cancel_at = SIZE_MAX;  // index of a notification
  std::function<void()> then;   // called at each notification
  std::unique_ptr<stw_watch, WatchCloser> watch;

  Watcher() {
    auto o = sized<stw_watch_options>();
    o.set_mask = STW_SET_INTERVAL;
    o.user = this;
    o.notify = [](void* user, const stw_watch_info* now) -> int32_t {
      auto& self = *static_cast<Watcher*>(user);
      self.notices.push_back(*now);
      if (self.then) self.then();
      return self.notices.size() == self.cancel_at + 1;
    };
    stw_watch* out = nullptr;
    EXPECT_EQ(stw_watch_create(&out, &o, nullptr), STW_OK);
    watch.reset(out);
  }
  stw_watch* get() const { return watch.get(); }
  stw_watch_info now() const {
    auto info = sized<stw_watch_info>();
    EXPECT_EQ(stw_watch_query(get(), &info), STW_OK);
    return info;
  }
  void forget(size_t at = SIZE_MAX) { notices.clear(), cancel_at = at; }
};

// A call from C: call_in_c of unwound.c.
struct CallInC {
  const char* name;
  stw_trainer* trainer;
  stw_dataset* dataset;
  const stw_batch* batch;
  const stw_run_options* options;
  const char* path;
};

// Returns when the thread that makes the call has ended.
void call_in_c(CallInC made) {
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, stw_test_call_in_c, &made), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
}

stw_plan_options plan_of_watch() {
  auto o = plan_options(4);
  o.micro_batch = 1;
  return o;
}

class Watching : public testing::Test {
 protected:
  TemporaryDirectory folder;
  Watcher watcher;
  Handle<stw_dataset> dataset = open_text(folder, text_of(2000));

  stw_trainer_options trainer_options() const {
    auto o = sized<stw_trainer_options>();
    o.watch = watcher.get();
    return o;
  }

  // Makes a call from C. The watch ends its thread at notification number `place`, counted from 0.
  void end_thread_at(size_t place, const CallInC& made) {
    watcher.forget();
    watcher.then = [&] {
      if (watcher.notices.size() == place + 1) pthread_exit(nullptr);
    };
    call_in_c(made);
    watcher.then = nullptr;
  }
};

TEST_F(Watching, AStepReportsItsMicroStepsAndIsUndoneAtEveryPlace) {
  const auto o = trainer_options();
  World w(tiny_gpt2, plan_of_watch(), &o);
  TokenBatch batch(4, 16);
  step(w.trainer.get(), batch.batch());
  const State before = state_of(w);
  World other(tiny_gpt2, plan_of_watch());
  step(other.trainer.get(), batch.batch());
  step(other.trainer.get(), batch.batch());
  const State after = state_of(other);

  // key: the micro-steps that the watch reported; value: those that the trainer reported
  std::map<uint64_t, uint64_t> counted;
  watcher.forget();
  watcher.then = [&] {
    counted[watcher.notices.back().done] = progress_of(w.trainer.get()).micro_steps_done;
  };
  step(w.trainer.get(), batch.batch());
  EXPECT_EQ(state_of(w), after);
  EXPECT_EQ(counted, (std::map<uint64_t, uint64_t>{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}}));
  EXPECT_EQ(progress_of(w.trainer.get()).micro_steps, 4u);
  double share = 0;
  for (const stw_watch_info& notice : watcher.notices) {
    EXPECT_EQ(notice.struct_size, sizeof notice);
    EXPECT_EQ(notice.work, uint32_t{STW_WORK_STEP});
    EXPECT_EQ(notice.unit, uint32_t{STW_UNIT_MICRO_STEPS});
    EXPECT_EQ(notice.total, 4u);
    EXPECT_GE(notice.share, share);
    share = notice.share;
  }
  EXPECT_EQ(share, 1);
  EXPECT_EQ(watcher.now().work, uint32_t{STW_WORK_NONE});
  watcher.then = nullptr;

  // A cancel at any point before the update changes no bit. The step made afterwards has the bits of an
  // uncancelled one.
  const size_t places = watcher.notices.size();
  ASSERT_GT(places, 100u);
  size_t cancelled = 0, finished = 0;
  for (size_t place = 0; place < places; place += 23) {
    World fresh(tiny_gpt2, plan_of_watch(), &o);
    step(fresh.trainer.get(), batch.batch());
    watcher.forget(place);
    const stw_status status = stw_trainer_step(fresh.trainer.get(), batch.batch(), nullptr);
    watcher.forget();
    if (status == STW_OK) {  // the update had begun
      ++finished;
      EXPECT_EQ(state_of(fresh), after);
      continue;
    }
    ++cancelled;
    ASSERT_EQ(status, STW_CANCELLED);
    EXPECT_EQ(state_of(fresh), before);
    step(fresh.trainer.get(), batch.batch());
    EXPECT_EQ(state_of(fresh), after) << place;
  }
  EXPECT_GT(cancelled, 4u);
  EXPECT_LE(finished, 2u);
}

// A cancel that comes too late for a step stops the next call, and only that one. If the callback asks to
// stop too late, that has no effect.
TEST_F(Watching, ACancelDuringTheUpdateIsForTheNextCall) {
  const auto o = trainer_options();
  World w(tiny_gpt2, plan_of_watch(), &o);
  TokenBatch batch(4, 16);
  watcher.forget();
  step(w.trainer.get(), batch.batch());
  const size_t last = watcher.notices.size();
  watcher.forget();
  watcher.then = [&] {
    if (watcher.notices.size() == last) stw_watch_cancel(watcher.get());
  };
  EXPECT_EQ(stw_trainer_step(w.trainer.get(), batch.batch(), nullptr), STW_OK);
  watcher.then = nullptr;
  watcher.forget();
  EXPECT_EQ(stw_trainer_step(w.trainer.get(), batch.batch(), nullptr), STW_CANCELLED);
  EXPECT_EQ(stw_trainer_step(w.trainer.get(), batch.batch(), nullptr), STW_OK);
}

// Muon updates each matrix in an instruction of its own. A cancel before the first of them undoes the step. A
// later cancel does not stop the step. If the watch's callback ends its thread between two of them, the
// trainer says that it must be restored.
TEST_F(Watching, AnUpdateIsFinishedOrNotBegun) {
  auto plan = plan_of_watch();
  plan.optimizer = STW_OPTIMIZER_MUON;
  const auto o = trainer_options();
  TokenBatch batch(4, 16);
  World w(tiny_gpt2, plan, &o);
  const auto before = values_of(w);
  const std::string checkpoint = folder / "checkpoint";
  ASSERT_EQ(stw_trainer_save(w.trainer.get(), checkpoint.c_str(), nullptr), STW_OK);
  watcher.forget();
  step(w.trainer.get(), batch.batch());
  const auto after = values_of(w);
  const size_t places = watcher.notices.size();
  int undone = 0, finished = 0, broken = 0;
  for (size_t place = places - 16; place < places; ++place) {
    World fresh(tiny_gpt2, plan, &o);
    watcher.forget(place);
    const stw_status status = stw_trainer_step(fresh.trainer.get(), batch.batch(), nullptr);
    watcher.forget();
    ++(status == STW_OK ? finished : undone);
    EXPECT_EQ(values_of(fresh), status == STW_OK ? after : before) << place;

    World ended(tiny_gpt2, plan, &o);
    end_thread_at(place, {"step", ended.trainer.get(), dataset.get(), batch.batch(), nullptr, nullptr});
    double loss = 0;
    const stw_status next = stw_trainer_evaluate(ended.trainer.get(), dataset.get(), 1, &loss, nullptr);
    EXPECT_EQ(next, status == STW_OK ? STW_BAD_STATE : STW_OK) << place;
    broken += next == STW_BAD_STATE;
    if (next == STW_BAD_STATE) {
      ASSERT_EQ(stw_trainer_restore(ended.trainer.get(), checkpoint.c_str(), nullptr), STW_OK);
    }
    step(ended.trainer.get(), batch.batch());
    EXPECT_EQ(values_of(ended), after) << place;
  }
  EXPECT_GT(undone, 2);
  EXPECT_GT(finished, 4);
  EXPECT_GT(broken, 4);
}

// Parameters change in the middle of the backward pass. From there on a step runs to its end.
TEST_F(Watching, AFusedUpdateIsUndoneOrFinished) {
  auto plan = plan_options(4);
  plan.fused_update = 1;
  const auto o = trainer_options();
  TokenBatch batch(4, 16);
  World w(tiny_gpt2, plan, &o);
  const State before = state_of(w);
  watcher.forget();
  step(w.trainer.get(), batch.batch());
  const State after = state_of(w);
  const size_t places = watcher.notices.size();
  bool undone = false, finished = false;
  for (size_t place = 0; place < places; place += 5) {
    World fresh(tiny_gpt2, plan, &o);
    watcher.forget(place);
    const stw_status status = stw_trainer_step(fresh.trainer.get(), batch.batch(), nullptr);
    watcher.forget();
    (status == STW_OK ? finished : undone) = true;
    EXPECT_EQ(state_of(fresh), status == STW_OK ? after : before) << place;
    if (status != STW_OK) step(fresh.trainer.get(), batch.batch());
    EXPECT_EQ(state_of(fresh), after) << place;
  }
  EXPECT_TRUE(undone && finished);
}

TEST_F(Watching, PlanningCreationAndOpeningEndWithoutAnObject) {
  const auto model = make_model(tiny_gpt2);
  const auto device = open_device();
  auto plan_options_ = plan_of_watch();
  plan_options_.watch = watcher.get();
  auto data = sized<stw_dataset_options>();
  const std::string path = folder / "text.txt";
  put_file(path, text_of(100000));
  data.path = path.c_str();
  data.vocabulary = 256;
  data.sequence = 16;
  data.watch = watcher.get();
  const auto plan = make_plan(model.get(), plan_options_);
  const auto of_trainer = trainer_options();

  stw_plan* no_plan = nullptr;
  stw_dataset* no_dataset = nullptr;
  stw_trainer* no_trainer = nullptr;
  uint64_t longest = 0;
  const auto create_plan = [&](stw_error* e) {
    return stw_plan_create(&no_plan, model.get(), &plan_options_, e);
  };
  const auto find_longest = [&](stw_error* e) {
    return stw_plan_longest_sequence(model.get(), &plan_options_, &longest, e);
  };
  const auto open = [&](stw_error* e) { return stw_dataset_open(&no_dataset, &data, e); };
  const auto create_trainer = [&](stw_error* e) {
    return stw_trainer_create(&no_trainer, device.get(), model.get(), plan.get(), &of_trainer, e);
  };
  const struct {
    std::function<stw_status(stw_error*)> call;
    uint32_t work;
    const char* message;
  } calls[] = {{create_plan, STW_WORK_PLAN, "plan: cancelled"},
               {find_longest, STW_WORK_PLAN, "plan: cancelled"},
               {open, STW_WORK_OPEN_DATASET, "dataset: its opening was cancelled"},
               {create_trainer, STW_WORK_CREATE_TRAINER, "trainer: its creation was cancelled"}};
  for (const auto& [call, work, message] : calls) {
    stw_error error = sized<stw_error>();
    stw_watch_cancel(watcher.get());  // with no call under way: stops the next one
    EXPECT_EQ(call(&error), STW_CANCELLED);
    EXPECT_STREQ(error.message, message);
    watcher.forget(work == STW_WORK_PLAN ? SIZE_MAX : 3);  // short searches notify rarely
    if (work != STW_WORK_PLAN) {
      EXPECT_EQ(call(&error), STW_CANCELLED);
      ASSERT_EQ(watcher.notices.size(), 4u);
      for (const stw_watch_info& notice : watcher.notices) {
        EXPECT_EQ(notice.work, work);
        EXPECT_EQ(notice.unit, uint32_t{STW_UNIT_BYTES});
      }
      EXPECT_GT(watcher.notices.back().done, watcher.notices.front().done);
    }
    EXPECT_EQ(no_plan, nullptr);
    EXPECT_EQ(no_dataset, nullptr);
    EXPECT_EQ(no_trainer, nullptr);
  }
  watcher.forget();
  EXPECT_EQ(open(nullptr), STW_OK);
  EXPECT_EQ(watcher.now().done, 100000u);
  EXPECT_EQ(watcher.now().total, 100000u);
  EXPECT_EQ(watcher.now().share, 1);
  stw_dataset_close(no_dataset);
  EXPECT_EQ(create_trainer(nullptr), STW_OK);
  EXPECT_EQ(watcher.now().done, watcher.now().total);
  stw_trainer_destroy(no_trainer);
  watcher.forget();
  EXPECT_EQ(create_plan(nullptr), STW_OK);
  EXPECT_GT(watcher.now().done, 0u);
  EXPECT_EQ(watcher.now().total, 0u);
  stw_plan_destroy(no_plan);
}

TEST_F(Watching, SavingIsStoppedOnlyByACancelDuringIt) {
  const auto o = trainer_options();
  World w(tiny_gpt2, plan_of_watch(), &o);
  run(w.trainer.get(), dataset.get(), 1);
  const std::string path = folder / "checkpoint";
  stw_watch_cancel(watcher.get());
  stw_trainer_cancel(w.trainer.get());
  // A host that was asked to end saves first.
  ASSERT_EQ(stw_trainer_save(w.trainer.get(), path.c_str(), nullptr), STW_OK);
  ASSERT_EQ(stw_trainer_export_model(w.trainer.get(), folder.path().c_str(), nullptr), STW_OK);
  ASSERT_EQ(stw_trainer_restore(w.trainer.get(), path.c_str(), nullptr), STW_OK);
  const State saved = state_of(w);
  double loss = 0;
  // Both cancels at once.
  EXPECT_EQ(stw_trainer_evaluate(w.trainer.get(), dataset.get(), 1, &loss, nullptr), STW_CANCELLED);
  EXPECT_EQ(stw_trainer_evaluate(w.trainer.get(), dataset.get(), 1, &loss, nullptr), STW_OK);

  run(w.trainer.get(), dataset.get(), 2);
  const State later = state_of(w);
  const std::string weights = folder / "model.safetensors";
  const std::string old_weights = file_bytes(weights), old_checkpoint = file_bytes(path);
  const auto save = [&] { return stw_trainer_save(w.trainer.get(), path.c_str(), nullptr); };
  const auto export_model = [&] {
    return stw_trainer_export_model(w.trainer.get(), folder.path().c_str(), nullptr);
  };
  const auto restore = [&] { return stw_trainer_restore(w.trainer.get(), path.c_str(), nullptr); };
  const struct {
    std::function<stw_status()> call;
    uint32_t work;
  } calls[] = {{save, STW_WORK_SAVE}, {export_model, STW_WORK_EXPORT}, {restore, STW_WORK_RESTORE}};
  for (const auto& [call, work] : calls) {
    watcher.forget(5);
    EXPECT_EQ(call(), STW_CANCELLED);
    EXPECT_EQ(watcher.notices.back().work, work);
    EXPECT_EQ(state_of(w), later);
    EXPECT_EQ(file_bytes(path), old_checkpoint);
    EXPECT_EQ(file_bytes(weights), old_weights);
    EXPECT_EQ(folder.entries(), 4u);  // no temporary file: text, checkpoint, weights, config
  }
  watcher.forget();
  EXPECT_EQ(restore(), STW_OK);
  EXPECT_EQ(state_of(w), saved);
  EXPECT_EQ(watcher.now().done, watcher.now().total);
}

// Export adds adapters to the weights. A cancel leaves the folder as it was.
TEST_F(Watching, ExportOfAModelReportsItsBytesAndLeavesNoFileAfterACancel) {
  const std::string tuned = folder / "tuned", merged = folder / "merged";
  auto o = sized<stw_model_options>();
  o.config_json = tiny_gpt2.c_str();
  o.config_json_size = tiny_gpt2.size();
  o.adapter_rank = 4;
  const auto model =
      make<stw_model>([&](stw_model** out, stw_error* e) { return stw_model_create(out, &o, e); });
  auto base = sized<stw_model_info>();
  ASSERT_EQ(stw_model_query(make_model(tiny_gpt2).get(), &base), STW_OK);
  const auto export_to = [&](const std::string& to, stw_watch* watch) {
    return stw_model_export_watched(model.get(), to.c_str(), watch, nullptr);
  };
  ASSERT_EQ(export_to(tuned, nullptr), STW_OK);

  stw_watch_cancel(watcher.get());  // an export ignores an earlier cancel, as a trainer's export does
  ASSERT_EQ(export_to(merged, watcher.get()), STW_OK);
  ASSERT_GT(watcher.notices.size(), 4u);
  const uint64_t bytes = 4 * base.parameters;
  for (size_t i = 0; i < watcher.notices.size(); ++i) {
    const stw_watch_info& notice = watcher.notices[i];
    EXPECT_EQ(notice.work, uint32_t{STW_WORK_EXPORT});
    EXPECT_EQ(notice.unit, uint32_t{STW_UNIT_BYTES});
    EXPECT_EQ(notice.total, bytes);
    EXPECT_GT(notice.done, i == 0 ? 0 : watcher.notices[i - 1].done);
  }
  EXPECT_EQ(watcher.now().done, bytes);
  EXPECT_EQ(file_bytes(merged + "/model.safetensors"), file_bytes(tuned + "/model.safetensors"));

  const size_t places = watcher.notices.size();
  const std::string config = file_bytes(merged + "/config.json"),
                    weights = file_bytes(merged + "/model.safetensors");
  for (const std::string& to : {merged, folder / "fresh"})
    for (const size_t place : {size_t{0}, places / 2, places - 1}) {
      watcher.forget(place);
      EXPECT_EQ(export_to(to, watcher.get()), STW_CANCELLED);
      EXPECT_EQ(watcher.notices.size(), place + 1);
    }
  EXPECT_EQ(file_bytes(merged + "/config.json"), config);
  EXPECT_EQ(file_bytes(merged + "/model.safetensors"), weights);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "fresh"));
}

TEST_F(Watching, AFrontierAndThePageWithOneAreCancelled) {
  const auto model = make_model(tiny_gpt2);
  const auto plan = make_plan(model.get(), plan_of_watch());
  stw_frontier_point points[8] = {};
  size_t count = 77, needed = 77;
  const auto frontier = [&](stw_error* e) {
    for (stw_frontier_point& p : points) p = {}, p.struct_size = sizeof p;
    return stw_plan_frontier_watched(plan.get(), points, 8, &count, watcher.get(), e);
  };
  const auto page = [&](stw_error* e) {
    return stw_plan_picture_watched(plan.get(), STW_PICTURE_HTML, nullptr, 0, &needed, watcher.get(), e);
  };
  for (const std::function<stw_status(stw_error*)>& call :
       {std::function<stw_status(stw_error*)>(frontier), std::function<stw_status(stw_error*)>(page)}) {
    stw_error error = sized<stw_error>();
    watcher.forget(0);
    watcher.then = [&] { EXPECT_EQ(watcher.notices.back().work, uint32_t{STW_WORK_PLAN}); };
    EXPECT_EQ(call(&error), STW_CANCELLED);
    EXPECT_STREQ(error.message, "plan: cancelled");
    EXPECT_EQ(watcher.notices.size(), 1u);
    watcher.forget();
    stw_watch_cancel(watcher.get());  // with no call under way: stops the next one
    EXPECT_EQ(call(nullptr), STW_CANCELLED);
    EXPECT_EQ(count, 77u);
    EXPECT_EQ(needed, 77u);
    EXPECT_EQ(points[0].peak, 0u);
  }
  watcher.then = nullptr;
  ASSERT_EQ(frontier(nullptr), STW_OK);
  ASSERT_EQ(page(nullptr), STW_OK);
  stw_frontier_point unwatched[8] = {};
  unwatched[0].struct_size = sizeof unwatched[0];
  size_t same = 0;
  ASSERT_EQ(stw_plan_frontier(plan.get(), unwatched, 8, &same, nullptr), STW_OK);
  ASSERT_EQ(same, count);
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(unwatched[i].peak, points[i].peak);
}

TEST_F(Watching, ACallbackMayNotUseTheTrainerThatIsAtWork) {
  const auto o = trainer_options();
  World w(tiny_gpt2, plan_of_watch(), &o);
  const std::string path = folder / "checkpoint", other = folder / "other";
  size_t calls = 0;
  watcher.then = [&] {
    ++calls;
    TokenBatch batch(4, 16);
    EXPECT_EQ(stw_trainer_step(w.trainer.get(), batch.batch(), nullptr), STW_BAD_STATE);
    EXPECT_EQ(stw_trainer_save(w.trainer.get(), other.c_str(), nullptr), STW_BAD_STATE);
    EXPECT_EQ(stw_trainer_restore(w.trainer.get(), path.c_str(), nullptr), STW_BAD_STATE);
    // Other handles may be used, and a cancel of this call does not reach their calls.
    EXPECT_EQ(make_plan(w.model.get(), plan_of_watch()) != nullptr, true);
  };
  watcher.forget(2);
  EXPECT_EQ(stw_trainer_save(w.trainer.get(), path.c_str(), nullptr), STW_CANCELLED);
  EXPECT_EQ(calls, 3u);
}

TEST_F(Watching, FromASignalHandler) {
  const auto o = trainer_options();
  World w(tiny_gpt2, plan_of_watch(), &o);
  static stw_trainer* trainer;
  static stw_watch* watch;
  trainer = w.trainer.get();
  watch = watcher.get();
  for (void (*const handler)(int) :
       {+[](int) { stw_trainer_cancel(trainer); }, +[](int) { stw_watch_cancel(watch); }}) {
    struct sigaction action = {}, before = {};
    action.sa_handler = handler;
    ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
    const itimerval soon{{0, 0}, {0, 20000}};
    ASSERT_EQ(setitimer(ITIMER_REAL, &soon, nullptr), 0);
    const auto options = run_options(uint64_t{1} << 40);
    EXPECT_EQ(stw_trainer_run(trainer, dataset.get(), &options, nullptr), STW_CANCELLED);
    ASSERT_EQ(sigaction(SIGALRM, &before, nullptr), 0);
    watcher.forget();
  }
}

TEST_F(Watching, AThreadThatIsCancelledLeavesTheEntryFirst) {
  World w(tiny_gpt2, plan_of_watch());
  struct Run {
    stw_trainer* trainer;
    stw_dataset* dataset;
    std::atomic<bool> begun = false, returned = false;
    stw_status status = STW_INTERNAL;
  } all{w.trainer.get(), dataset.get()};
  pthread_t thread;
  ASSERT_EQ(
      pthread_create(
          &thread, nullptr,
          [](void* user) -> void* {
            auto& run = *static_cast<Run*>(user);
            auto o = run_options(40);
            o.progress_user = user;
            o.progress = [](void* self, const stw_progress*) -> int32_t {
              static_cast<Run*>(self)->begun = true;
              const timespec nap{0, 1000000};  // a cancellation point, if cancellation were enabled there
              nanosleep(&nap, nullptr);
              return 0;
            };
            run.status = stw_trainer_run(run.trainer, run.dataset, &o, nullptr);
            run.returned = true;
            for (;;) pthread_testcancel();
          },
          &all),
      0);
  while (!all.begun) std::this_thread::yield();
  ASSERT_EQ(pthread_cancel(thread), 0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_TRUE(all.returned);
  EXPECT_EQ(all.status, STW_OK);
  EXPECT_EQ(progress_of(w.trainer.get()).batches, 40u);
}

// Python's interpreter ends daemon threads in this way.
TEST_F(Watching, ACallbackThatEndsItsThreadLeavesTheTrainerWhole) {
  World w(tiny_gpt2, plan_of_watch());
  auto o = run_options(5);
  o.progress = [](void*, const stw_progress* now) -> int32_t {
    if (now->batches == 2) pthread_exit(nullptr);
    return 0;
  };
  call_in_c({"run", w.trainer.get(), dataset.get(), nullptr, &o, nullptr});
  EXPECT_EQ(progress_of(w.trainer.get()).phase, uint32_t{STW_PHASE_IDLE});
  run(w.trainer.get(), dataset.get(), 5);
  World other(tiny_gpt2, plan_of_watch());
  run(other.trainer.get(), dataset.get(), 5);
  EXPECT_EQ(state_of(w), state_of(other));
}

// A watch's callback may end its thread in every long call. Before an update begins, the call is then undone,
// as after a cancel.
TEST_F(Watching, AWatchThatEndsItsThreadLeavesTheTrainerWhole) {
  const auto o = trainer_options();
  TokenBatch batch(4, 16);
  const std::string checkpoint = folder / "checkpoint", timeline = folder / "timeline";
  World stepped(tiny_gpt2, plan_of_watch());
  step(stepped.trainer.get(), batch.batch());
  ASSERT_EQ(stw_trainer_save(stepped.trainer.get(), checkpoint.c_str(), nullptr), STW_OK);
  const State after_step = state_of(stepped);
  const std::string saved = file_bytes(checkpoint);
  const size_t entries = folder.entries();

  const struct {
    const char* name;
    const std::string& path;
  } calls[] = {{"step", checkpoint},      {"evaluate", checkpoint},        {"generate", checkpoint},
               {"calibrate", checkpoint}, {"timeline", timeline},          {"save", checkpoint},
               {"restore", checkpoint},   {"export_model", folder.path()}, {"replan", checkpoint}};
  for (const auto& [name, path] : calls) {
    World whole(tiny_gpt2, plan_of_watch(), &o);
    TemporaryDirectory other;
    const std::string other_path = path == folder.path() ? other.path() : other / "file";
    const bool reads = std::string(name) == "restore";
    watcher.forget();
    call_in_c({name, whole.trainer.get(), dataset.get(), batch.batch(), nullptr,
               reads ? path.c_str() : other_path.c_str()});
    const size_t notices = watcher.notices.size();
    ASSERT_GT(notices, 4u) << name;
    for (const size_t permille : {0, 10, 500, 990}) {
      World w(tiny_gpt2, plan_of_watch(), &o);
      const State before = state_of(w);
      const size_t last = notices * permille / 1000;
      end_thread_at(last, {name, w.trainer.get(), dataset.get(), batch.batch(), nullptr, path.c_str()});
      EXPECT_EQ(watcher.notices.size(), last + 1) << name;
      EXPECT_EQ(progress_of(w.trainer.get()).phase, uint32_t{STW_PHASE_IDLE}) << name;
      EXPECT_EQ(watcher.now().work, uint32_t{STW_WORK_NONE}) << name;
      EXPECT_EQ(state_of(w), before) << name << " at notice " << last;
      EXPECT_EQ(file_bytes(checkpoint), saved) << name;
      EXPECT_EQ(folder.entries(), entries) << name;
      step(w.trainer.get(), batch.batch());
      EXPECT_EQ(state_of(w), after_step) << name << " at notice " << last;
    }
  }
}

#ifndef STW_SANITIZED  // sanitizers make frames larger
TEST_F(Watching, AThreadWithASmallStackIsEnough) {
  struct All {
    std::string folder;
    stw_dataset* dataset;
    bool done = false;
  } all{folder.path(), dataset.get()};
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
#ifdef __GLIBC__
  pthread_attr_t before, small;  // of the library's threads
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_attr_init(&small), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&small, 128 << 10), 0);
  ASSERT_EQ(pthread_setattr_default_np(&small), 0);
#endif
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* user) -> void* {
                  auto& self = *static_cast<All*>(user);
                  for (const std::string& config : {tiny_gpt2, tiny_llama}) {
                    World w(config, plan_options(4));
                    run(w.trainer.get(), self.dataset, 3);
                    const std::string path = self.folder + "/checkpoint";
                    double loss = 0;
                    EXPECT_EQ(stw_trainer_evaluate(w.trainer.get(), self.dataset, 1, &loss, nullptr), STW_OK);
                    EXPECT_EQ(stw_trainer_save(w.trainer.get(), path.c_str(), nullptr), STW_OK);
                    EXPECT_EQ(stw_trainer_restore(w.trainer.get(), path.c_str(), nullptr), STW_OK);
                    EXPECT_EQ(stw_trainer_export_model(w.trainer.get(), self.folder.c_str(), nullptr),
                              STW_OK);
                    size_t needed = 0;
                    EXPECT_EQ(stw_plan_picture(w.plan.get(), STW_PICTURE_HTML, nullptr, 0, &needed, nullptr),
                              STW_OK);
                  }
                  self.done = true;
                  return nullptr;
                },
                &all),
            0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
#ifdef __GLIBC__
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
#endif
  pthread_attr_destroy(&attributes);
  EXPECT_TRUE(all.done);
}
#endif

TEST_F(Watching, WrongOptionsAreRefused) {
  auto o = sized<stw_watch_options>();
  stw_watch* out = nullptr;
  stw_error error = sized<stw_error>();
  o.set_mask = 2;
  EXPECT_EQ(stw_watch_create(&out, &o, &error), STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message, "watch options.set_mask has bits that this library does not know");
  o = sized<stw_watch_options>();
  o.reserved = 1;
  EXPECT_EQ(stw_watch_create(&out, &o, nullptr), STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_watch_create(nullptr, nullptr, nullptr), STW_BAD_ARGUMENT);
  EXPECT_EQ(out, nullptr);
  auto info = sized<stw_watch_info>();
  EXPECT_EQ(stw_watch_query(nullptr, &info), STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_watch_query(watcher.get(), nullptr), STW_BAD_ARGUMENT);
  stw_watch_cancel(nullptr);
  stw_watch_destroy(nullptr);
  // By default short calls send no notification.
  ASSERT_EQ(stw_watch_create(&out, nullptr, nullptr), STW_OK);
  stw_watch_destroy(out);
}

}  // namespace
}  // namespace stw::api_test
