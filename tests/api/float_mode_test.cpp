// The host's floating-point mode (rounding, denormals, traps) changes no bit, and is restored after every
// call.
#include <cfenv>
#include <thread>

#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

#if defined(__x86_64__) || defined(__aarch64__)

#if defined(__x86_64__)
uint32_t control() { return __builtin_ia32_stmxcsr() & 0xffc0; }  // without the sticky exception flags
void flush_to_zero() { __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); }
#else
uint64_t control() {
  uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
}
void flush_to_zero() { asm volatile("msr fpcr, %0" : : "r"(control() | uint64_t{1} << 24)); }
#endif

// Modes that a host may have set.
struct Mode {
  const char* name;
  void (*set)();
};
const Mode modes[] = {{"flush to zero", flush_to_zero},
                      {"upward", [] { std::fesetround(FE_UPWARD); }},
                      {"both", [] {
                         std::fesetround(FE_UPWARD);
                         flush_to_zero();
                       }}};

// Sets a mode, and checks at the end that the calling thread still has it. Then it restores the default.
class HostMode {
 public:
  explicit HostMode(void (*set)()) {
    std::fegetenv(&before_);
    if (set) set();
    control_ = control();
    rounding_ = std::fegetround();
  }
  ~HostMode() {
    EXPECT_EQ(control(), control_);
    EXPECT_EQ(std::fegetround(), rounding_);
    std::fesetenv(&before_);
  }

 private:
  std::fenv_t before_;
  decltype(control()) control_;
  int rounding_;
};

void (*mode_of_threads)();  // sets the mode of the threads of the host's executor

// Makes gradients so small that their squares, the second moments, are denormal. Leaves the thread in another
// mode.
int32_t shrink(void* user, const stw_gradients* g) {
  for (uint64_t i = 0; i < g->count; ++i) g->data[i] *= 1e-18f;
  if (auto* set = *static_cast<void (**)()>(user)) set();
  return 0;
}

struct Outcome {
  std::string plan;
  std::vector<State> states;
  std::vector<double> figures;
  std::vector<int32_t> tokens;
  bool operator==(const Outcome&) const = default;
};

class FloatMode : public testing::Test {
 protected:
  TemporaryDirectory folder;
  Handle<stw_dataset> dataset = open_text(folder, text_of(2000));

  Outcome outcome(void (*set)(), bool host_threads) {
    const HostMode host(set);
    Outcome all;
    auto o = sized<stw_device_options>();
    o.threads = 3;
    mode_of_threads = set;
    if (host_threads)
      o.run = [](void*, uint32_t tasks, void (*task)(void*, uint32_t), void* context) {
        std::thread other([&] {
          const HostMode mode(mode_of_threads);
          for (uint32_t i = 1; i < tasks; ++i) task(context, i);
        });
        if (mode_of_threads) mode_of_threads();
        task(context, 0);
        other.join();
      };
    auto t = sized<stw_trainer_options>();
    t.gradient_hook = shrink;
    t.gradient_user = &set;
    auto p = plan_options(5);
    p.micro_batch = 2;
    p.threads = 3;
    World w(tiny_llama, p, &t,
            make<stw_device>([&](stw_device** out, stw_error* e) { return stw_device_open(out, &o, e); }));
    all.plan = stw_plan_json(w.plan.get());
    auto r = run_options(3);
    r.base_batch = 7;
    r.progress_user = &set;
    r.progress = [](void* user, const stw_progress*) -> int32_t {
      if (auto* change = *static_cast<void (**)()>(user)) change();
      return 0;
    };
    stw_error error = sized<stw_error>();
    must(stw_trainer_run(w.trainer.get(), dataset.get(), &r, &error), error);
    all.figures = {progress_of(w.trainer.get()).loss, progress_of(w.trainer.get()).grad_norm,
                   progress_of(w.trainer.get()).learning_rate, 0};
    must(stw_trainer_evaluate(w.trainer.get(), dataset.get(), 2, &all.figures.back(), &error), error);
    all.states.push_back(state_of(w));
    auto g = sized<stw_generate_options>();
    const int32_t prompt[] = {97, 98};
    all.tokens.resize(14);
    uint64_t count = 0;
    g.prompt = prompt;
    g.prompt_count = 2;
    g.out = all.tokens.data();
    g.out_capacity = all.tokens.size();
    g.temperature = 2;
    must(stw_trainer_generate(w.trainer.get(), &g, &count, &error), error);
    return all;
  }
};

TEST_F(FloatMode, OfTheHostChangesNoBitAndComesBack) {
  const Outcome expected = outcome(nullptr, false);
  bool has_denormals = false;
  for (const auto& values : expected.states[0].second)
    for (const float x : values) has_denormals |= std::fpclassify(x) == FP_SUBNORMAL;
  ASSERT_TRUE(has_denormals);
  for (const Mode& mode : modes)
    for (const bool host_threads : {false, true})
      EXPECT_EQ(outcome(mode.set, host_threads) == expected, true) << mode.name << ' ' << host_threads;
}

// Traps that the host has enabled do not fire in the library, and the library raises no exception flag in the
// host.
TEST_F(FloatMode, TrapsAreTheHosts) {
  const HostMode host([] {
    std::feclearexcept(FE_ALL_EXCEPT);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x1f80u);
#endif
  });
  World w(tiny_gpt2, plan_options());
  run(w.trainer.get(), dataset.get(), 1);
}

#endif

}  // namespace
}  // namespace stw::api_test
