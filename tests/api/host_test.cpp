// The arena, allocator, threads and log that a host may supply change no bit.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

class Host : public testing::Test {
 protected:
  TemporaryDirectory folder;
  Handle<stw_dataset> dataset = open_text(folder, text_of(2000));

  static stw_plan_options plan_of() {
    auto o = plan_options(5);
    o.micro_batch = 2;
    return o;
  }
  State trained(const World& w) {
    run(w.trainer.get(), dataset.get(), 3);
    return state_of(w);
  }
  State reference() { return trained(World(tiny_gpt2, plan_of())); }
};

TEST_F(Host, ArenaIsUsedExactly) {
  const auto model = make_model(tiny_gpt2);
  const uint64_t bytes = info_of(make_plan(model.get(), plan_of()).get()).arena;
  constexpr size_t guard = 4096;
  const uint64_t room = (guard + bytes + guard + 255) / 256 * 256;
  const std::unique_ptr<unsigned char, void (*)(void*)> memory(
      static_cast<unsigned char*>(std::aligned_alloc(256, room)), std::free);
  std::memset(memory.get(), 0xa5, room);
  auto o = sized<stw_trainer_options>();
  o.arena = memory.get() + guard;
  o.arena_bytes = bytes;
  {
    World w(tiny_gpt2, plan_of(), &o);
    EXPECT_EQ(trained(w), reference());
    const auto view = view_of(w.trainer.get(), 0);
    const auto* at = static_cast<const unsigned char*>(view->dl_tensor.data);
    EXPECT_TRUE(at >= memory.get() + guard && at < memory.get() + guard + bytes);
  }
  for (size_t i = 0; i < guard; ++i) ASSERT_EQ(memory.get()[i], 0xa5) << i;
  for (size_t i = guard + bytes; i < room; ++i) ASSERT_EQ(memory.get()[i], 0xa5) << i;

  const auto device = open_device();
  const auto plan = make_plan(model.get(), plan_of());
  stw_trainer* out = nullptr;
  stw_error error = sized<stw_error>();
  o.arena_bytes = bytes - 1;
  EXPECT_EQ(stw_trainer_create(&out, device.get(), model.get(), plan.get(), &o, &error), STW_OUT_OF_MEMORY);
  EXPECT_EQ(error.bytes_needed, bytes);
  EXPECT_EQ(error.bytes_available, bytes - 1);
  o.arena = nullptr;
  EXPECT_EQ(stw_trainer_create(&out, device.get(), model.get(), plan.get(), &o, &error), STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message, "trainer: arena_bytes is the size of an arena, and arena is NULL");
  o.arena = memory.get() + guard + 64;
  o.arena_bytes = bytes;
  EXPECT_EQ(stw_trainer_create(&out, device.get(), model.get(), plan.get(), &o, &error), STW_BAD_ARGUMENT);
  EXPECT_EQ(out, nullptr);
}

struct Ledger {
  int allocations = 0, releases = 0;
  size_t bytes = 0;
  void* memory = nullptr;
  bool fail = false, crooked = false;
  static void* allocate(void* user, size_t bytes, size_t alignment, void* stream) {
    auto& self = *static_cast<Ledger*>(user);
    EXPECT_EQ(stream, nullptr);
    if (self.fail) return nullptr;
    ++self.allocations;
    self.bytes = bytes;
    const size_t room = (bytes + 2 * alignment - 1) / alignment * alignment;
    char* memory = static_cast<char*>(std::aligned_alloc(alignment, room));
    return self.memory = self.crooked ? memory + 8 : memory;
  }
  static void release(void* user, void* memory, size_t bytes, void*) {
    auto& self = *static_cast<Ledger*>(user);
    ++self.releases;
    EXPECT_EQ(memory, self.memory);
    EXPECT_EQ(bytes, self.bytes);
    std::free(static_cast<char*>(memory) - (self.crooked ? 8 : 0));
  }
  Handle<stw_device> device() {
    auto o = sized<stw_device_options>();
    o.threads = 2;
    o.allocate = allocate;
    o.release = release;
    o.memory_user = this;
    return make<stw_device>([&](stw_device** out, stw_error* e) { return stw_device_open(out, &o, e); });
  }
};

TEST_F(Host, AllocatorIsCalledOnceForTheArena) {
  Ledger ledger;
  {
    World w(tiny_gpt2, plan_of(), nullptr, ledger.device());
    EXPECT_EQ(ledger.allocations, 1);
    EXPECT_EQ(ledger.bytes, info_of(w.plan.get()).arena);
    EXPECT_EQ(trained(w), reference());
    double loss = 0;
    EXPECT_EQ(stw_trainer_evaluate(w.trainer.get(), dataset.get(), 1, &loss, nullptr), STW_OK);
    const std::string path = folder / "checkpoint";
    EXPECT_EQ(stw_trainer_save(w.trainer.get(), path.c_str(), nullptr), STW_OK);
    EXPECT_EQ(stw_trainer_restore(w.trainer.get(), path.c_str(), nullptr), STW_OK);
    EXPECT_EQ(ledger.allocations, 1);
    EXPECT_EQ(ledger.releases, 0);
  }
  EXPECT_EQ(ledger.allocations, 1);
  EXPECT_EQ(ledger.releases, 1);
}

// At every point of the frontier the trainer allocates the planned bytes, and trains to the same bits.
TEST_F(Host, EveryPointOfTheFrontierAllocatesWhatItPlans) {
  const auto model = make_model(tiny_gpt2);
  auto o = plan_of();
  o.state_bits = STW_STATES_32;
  std::vector<stw_frontier_point> points(20);
  points[0].struct_size = sizeof points[0];
  size_t count = 0;
  ASSERT_EQ(stw_plan_frontier(make_plan(model.get(), o).get(), points.data(), points.size(), &count, nullptr),
            STW_OK);
  ASSERT_GT(count, 5u);
  for (size_t i = 0; i < count; ++i) {
    o.memory_bytes = points[i].peak;
    Ledger ledger;
    const World w(tiny_gpt2, o, nullptr, ledger.device());
    EXPECT_EQ(ledger.bytes, points[i].peak);
    EXPECT_EQ(ledger.bytes, info_of(w.plan.get()).arena);
    EXPECT_EQ(trained(w), reference()) << points[i].peak;
  }
}

TEST_F(Host, AllocatorThatFails) {
  Ledger ledger;
  const auto device = ledger.device();
  const auto model = make_model(tiny_gpt2);
  const auto plan = make_plan(model.get(), plan_of());
  ledger.fail = true;
  stw_trainer* out = nullptr;
  stw_error error = sized<stw_error>();
  EXPECT_EQ(stw_trainer_create(&out, device.get(), model.get(), plan.get(), nullptr, &error),
            STW_OUT_OF_MEMORY);
  EXPECT_EQ(error.bytes_needed, info_of(plan.get()).arena);
  EXPECT_EQ(std::string(error.message), "trainer: the arena needs " + std::to_string(error.bytes_needed) +
                                            " bytes, which the host's allocator refused");
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(ledger.releases, 0);
  // Misaligned memory is given back.
  ledger.fail = false;
  ledger.crooked = true;
  EXPECT_EQ(stw_trainer_create(&out, device.get(), model.get(), plan.get(), nullptr, &error),
            STW_BAD_ARGUMENT);
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(ledger.releases, ledger.allocations);
  auto o = sized<stw_device_options>();
  o.allocate = Ledger::allocate;
  stw_device* half = nullptr;
  EXPECT_EQ(stw_device_open(&half, &o, nullptr), STW_BAD_ARGUMENT) << "both or none";
}

#ifndef STW_SANITIZED  // sanitizers reserve address space themselves
TEST_F(Host, TheSystemRefusesMemoryThatIsFree) {
  const auto device = open_device();
  const auto model = make_model(tiny_gpt2);
  const auto plan = make_plan(model.get(), plan_of());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit small{1 << 20, before.rlim_max};
  stw_trainer* out = nullptr;
  stw_error error = sized<stw_error>();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &small), 0);
  const stw_status status = stw_trainer_create(&out, device.get(), model.get(), plan.get(), nullptr, &error);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(status, STW_OUT_OF_MEMORY);
  EXPECT_NE(std::string(error.message).find("which the system refused, although"), std::string::npos)
      << error.message;
}
#endif

std::atomic<int> runs;
void run_serially(void*, uint32_t tasks, void (*task)(void*, uint32_t), void* context) {
  ++runs;
  for (uint32_t i = tasks; i-- > 0;) task(context, i);
}
void run_on_threads(void*, uint32_t tasks, void (*task)(void*, uint32_t), void* context) {
  ++runs;
  EXPECT_LE(tasks, 2u);
  std::thread other([&] {
    for (uint32_t i = 1; i < tasks; i += 2) task(context, i);
  });
  for (uint32_t i = 0; i < tasks; i += 2) task(context, i);
  other.join();
}

TEST_F(Host, ThreadsGiveTheSameBits) {
  const State expected = reference();
  for (const stw_run_fn how : {run_serially, run_on_threads}) {
    auto o = sized<stw_device_options>();
    o.threads = 2;
    o.run = how;
    runs = 0;
    World w(tiny_gpt2, plan_of(), nullptr,
            make<stw_device>([&](stw_device** out, stw_error* e) { return stw_device_open(out, &o, e); }));
    EXPECT_EQ(trained(w), expected);
    EXPECT_GT(runs, 0);
  }
  auto o = sized<stw_device_options>();
  for (const uint32_t isa : {STW_ISA_SCALAR, STW_ISA_AVX2, STW_ISA_AVX512, STW_ISA_NEON})
    for (const uint32_t threads : {1u, 3u}) {
      o.isa = isa;
      o.threads = threads;
      stw_device* device = nullptr;
      const stw_status status = stw_device_open(&device, &o, nullptr);
      if (status == STW_UNSUPPORTED) continue;
      ASSERT_EQ(status, STW_OK);
      auto plan = plan_of();
      plan.threads = threads;
      const World w(tiny_gpt2, plan, nullptr, Handle<stw_device>(device));
      EXPECT_EQ(trained(w), expected) << isa << ' ' << threads;
    }
}

TEST_F(Host, AForkedChildOpensItsOwn) {
  const World before(tiny_gpt2, plan_of());
  const State expected = reference();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool same = false;
    try {
      const World own(tiny_gpt2, plan_of(), nullptr, open_device(1));  // sanitizers start no threads here
      same = trained(own) == expected;
    } catch (...) {}
    _exit(same ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(trained(before), expected);
}

// The child lacks the device's threads: without a check it would wait for them forever.
TEST_F(Host, CallsOfAForkedChildReturnAtOnce) {
  World w(tiny_gpt2, plan_of());
  TokenBatch batch(5, 16);
  step(w.trainer.get(), batch.batch());
  const State before = state_of(w);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    int wrong = 0;
    const auto refused = [&](stw_status status) { wrong += status != STW_BAD_STATE; };
    stw_error error = sized<stw_error>();
    refused(stw_trainer_step(w.trainer.get(), batch.batch(), &error));
    wrong += std::string(error.message).find("fork") == std::string::npos;
    double loss = 0;
    refused(stw_trainer_evaluate(w.trainer.get(), dataset.get(), 1, &loss, nullptr));
    refused(stw_trainer_save(w.trainer.get(), (folder / "checkpoint").c_str(), nullptr));
    refused(stw_trainer_replan(w.trainer.get(), 0, nullptr, nullptr));
    auto progress = sized<stw_progress>();
    refused(stw_trainer_progress(w.trainer.get(), &progress));
    auto info = sized<stw_device_info>();
    refused(stw_device_query(w.device.get(), &info));
    stw_trainer* out = nullptr;
    refused(stw_trainer_create(&out, w.device.get(), w.model.get(), w.plan.get(), nullptr, nullptr));
    w.trainer.reset();  // has no effect
    w.device.reset();
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(state_of(w), before);
  step(w.trainer.get(), batch.batch());
}

TEST_F(Host, LogReportsSkippedSteps) {
  struct Lines {
    std::vector<std::pair<int32_t, std::string>> all;
    static void add(void* user, int32_t level, const char* component, const char* message) {
      static_cast<Lines*>(user)->all.emplace_back(level, std::string(component) + ": " + message);
    }
  };
  for (const int32_t level : {0, static_cast<int32_t>(STW_LOG_ERROR), static_cast<int32_t>(STW_LOG_INFO)}) {
    Lines lines;
    auto o = sized<stw_device_options>();
    o.log = Lines::add;
    o.log_user = &lines;
    o.log_level = level;
    World w(tiny_gpt2, plan_of(), nullptr,
            make<stw_device>([&](stw_device** out, stw_error* e) { return stw_device_open(out, &o, e); }));
    TokenBatch batch(5, 16);
    step(w.trainer.get(), batch.batch());
    const auto is_warning = [](const auto& line) { return line.first == STW_LOG_WARNING; };
    EXPECT_TRUE(std::none_of(lines.all.begin(), lines.all.end(), is_warning));
    batch.targets.assign(batch.targets.size(), -100);
    step(w.trainer.get(), batch.batch());
    ASSERT_EQ(std::count_if(lines.all.begin(), lines.all.end(), is_warning), level == STW_LOG_ERROR ? 0 : 1);
    for (const auto& [_, line] : lines.all) EXPECT_NE(line.find("skipped"), std::string::npos) << line;
    // Polling returns the same messages.
    std::vector<std::pair<int32_t, std::string>> polled;
    auto message = sized<stw_log_message>();
    for (;;) {
      ASSERT_EQ(stw_device_next_log(w.device.get(), message.number, &message), STW_OK);
      if (message.number == 0) break;
      EXPECT_EQ(message.number, polled.size() + 1);
      polled.emplace_back(message.level, std::string(message.component) + ": " + message.text);
    }
    EXPECT_EQ(polled, lines.all);
  }
}

TEST_F(Host, TheLastMessagesAreKept) {
  World w(tiny_gpt2, plan_of());
  TokenBatch batch(5, 16);
  batch.targets.assign(batch.targets.size(), -100);
  for (int i = 0; i < 70; ++i) step(w.trainer.get(), batch.batch());
  auto message = sized<stw_log_message>();
  ASSERT_EQ(stw_device_next_log(w.device.get(), 0, &message), STW_OK);
  EXPECT_EQ(message.number, 7u);
  ASSERT_EQ(stw_device_next_log(w.device.get(), 69, &message), STW_OK);
  EXPECT_EQ(message.number, 70u);
  ASSERT_EQ(stw_device_next_log(w.device.get(), 70, &message), STW_OK);
  EXPECT_EQ(message.number, 0u);
  EXPECT_EQ(stw_device_next_log(nullptr, 0, &message), STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_device_next_log(w.device.get(), 0, nullptr), STW_BAD_ARGUMENT);
}

}  // namespace
}  // namespace stw::api_test
