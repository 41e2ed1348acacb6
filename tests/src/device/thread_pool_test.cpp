#include "src/device/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "src/device/machine.h"

namespace stw::thread_pool_test {
namespace {

std::unique_ptr<ThreadPool> make_pool(int threads) {
  auto pool = ThreadPool::create(threads);
  EXPECT_TRUE(pool);
  return std::move(*pool);
}

// An executor as a host might have: `threads` threads for each call, indices in descending order.
struct Host {
  int threads;
  uint32_t calls = 0;
};
void run_on_host(void* user, uint32_t tasks, void (*task)(void*, uint32_t), void* context) {
  auto* host = static_cast<Host*>(user);
  ++host->calls;
  std::atomic<int64_t> left = tasks;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < host->threads; ++thread)
    threads.emplace_back([&] {
      for (int64_t index = left.fetch_sub(1) - 1; index >= 0; index = left.fetch_sub(1) - 1)
        task(context, static_cast<uint32_t>(index));
    });
  for (std::thread& thread : threads) thread.join();
}

// Counts every index, and detects two concurrent tasks with one thread number.
struct Counting {
  explicit Counting(int64_t tasks, int thread_count)
      : threads(thread_count), counts(static_cast<size_t>(tasks)), running(1024) {}
  int threads;
  std::vector<int> counts;  // not atomic, so that ThreadSanitizer finds an index that runs twice
  std::vector<std::atomic<int>> running;
  std::atomic<int> clashes = 0;
  static void task(void* context, int64_t index, int thread) {
    auto* self = static_cast<Counting*>(context);
    if (thread < 0 || thread >= self->threads || self->running[thread].fetch_add(1) != 0) ++self->clashes;
    ++self->counts[index];
    self->running[thread].fetch_sub(1);
  }
};

void check_runs(ThreadPool& pool, int rounds) {
  const kernels::Parallel parallel = pool.parallel();
  EXPECT_EQ(parallel.threads, pool.threads());
  for (int round = 0; round < rounds; ++round) {
    for (const int64_t tasks : {0, 1, 2, 3, 17, 1000}) {
      Counting counting(tasks, pool.threads());
      parallel.run(parallel.self, tasks, Counting::task, &counting);
      EXPECT_EQ(counting.clashes, 0);
      for (const int count : counting.counts) ASSERT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, EveryIndexRunsOnce) {
  for (const int threads : {1, 2, 3, 8}) check_runs(*make_pool(threads), 200);
}

TEST(ThreadPool, AProcessHasTheProcessorsOfItsAffinity) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(processor_count(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_LE(processor_count(), CPU_COUNT(&before));
}

TEST(ThreadPool, OnTheHostsExecutor) {
  for (const int host_threads : {1, 2, 5}) {
    Host host{host_threads};
    auto pool = ThreadPool::create(3, run_on_host, &host);
    ASSERT_TRUE(pool);
    check_runs(**pool, 20);
    EXPECT_EQ(host.calls, 20u * 4);  // runs of 0 or 1 tasks do not call the host
  }
}

TEST(ThreadPool, ShortRunsDoNotLoseTasks) {
  for (const int threads : {2, 4}) {
    auto pool = make_pool(threads);
    int64_t sums[4] = {};
    const auto add = [](void* context, int64_t index, int thread) {
      static_cast<int64_t*>(context)[thread] += index + 1;
    };
    for (int round = 0; round < 100000; ++round) pool->run(threads, add, sums);
    EXPECT_EQ(sums[0] + sums[1] + sums[2] + sums[3], 100000 * threads * (threads + 1) / 2);
  }
}

TEST(ThreadPool, NestedRunsAreSerialUnderTheSameNumber) {
  struct Outer {
    ThreadPool* pool;
    Counting inner{64 * 10, 4};
    std::atomic<int> wrong = 0;
  };
  struct Inner {
    Outer* outer;
    int64_t first;
    int thread;
  };
  const auto inner_task = [](void* context, int64_t index, int thread) {
    const auto* inner = static_cast<Inner*>(context);
    if (thread != inner->thread) ++inner->outer->wrong;
    Counting::task(&inner->outer->inner, inner->first + index, thread);
  };
  static void (*const inner_entry)(void*, int64_t, int) = inner_task;
  const auto outer_task = [](void* context, int64_t index, int thread) {
    auto* outer = static_cast<Outer*>(context);
    Inner inner{outer, index * 10, thread};
    outer->pool->run(10, inner_entry, &inner);
  };
  Host host{3};
  auto own = make_pool(4);
  auto lent = ThreadPool::create(4, run_on_host, &host);
  for (ThreadPool* pool : {own.get(), lent->get()}) {
    Outer outer{pool};
    pool->run(64, outer_task, &outer);
    EXPECT_EQ(outer.wrong, 0);
    EXPECT_EQ(outer.inner.clashes, 0);
    for (const int count : outer.inner.counts) ASSERT_EQ(count, 1);
  }
}

TEST(ThreadPool, CallersTakeTurns) {
  auto pool = make_pool(3);
  Counting counting(3 * 500 * 8, 3);
  struct Slice {
    Counting* counting;
    int64_t first;
  };
  const auto task = [](void* context, int64_t index, int thread) {
    const auto* slice = static_cast<Slice*>(context);
    Counting::task(slice->counting, slice->first + index, thread);
  };
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 500; ++round) {
        Slice slice{&counting, (caller * 500 + round) * 8};
        pool->run(8, task, &slice);
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(counting.clashes, 0);
  for (const int count : counting.counts) ASSERT_EQ(count, 1);
}

TEST(ThreadPool, WorkersReallyTakePart) {
  auto pool = make_pool(2);
  struct Meeting {
    std::atomic<int> arrived = 0;
  } meeting;
  // Ends only if both tasks run at the same time.
  const auto meet = [](void* context, int64_t, int) {
    auto& arrived = static_cast<Meeting*>(context)->arrived;
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  };
  pool->run(2, meet, &meeting);
  EXPECT_EQ(meeting.arrived, 2);
}

// While all threads work, each has a task of its own share, whichever came first. If a thread stays away,
// others take its share.
TEST(ThreadPool, ThreadsTakeTheirSharesFirst) {
  struct Meeting {
    int64_t wanted;
    std::atomic<int64_t> here = 0;
    std::vector<int> threads;
    static void task(void* context, int64_t index, int thread) {
      auto* self = static_cast<Meeting*>(context);
      self->threads[index] = thread;
      ++self->here;
      while (self->here < self->wanted) std::this_thread::yield();
    }
  };
  const auto pool = make_pool(5);
  for (int round = 0; round < 50; ++round) {
    Meeting all{5, 0, std::vector<int>(5, -1)};
    pool->run(5, Meeting::task, &all);
    EXPECT_EQ(all.threads, (std::vector<int>{0, 1, 2, 3, 4}));
    Meeting independent{0, 0, std::vector<int>(7, -1)};  // shares of 2, 2, 1, 1, 1
    pool->run(7, Meeting::task, &independent);
    EXPECT_EQ(std::count(independent.threads.begin(), independent.threads.end(), -1), 0);
  }
}

TEST(ThreadPool, CreationAndDestruction) {
  for (int round = 0; round < 200; ++round) {
    auto pool = make_pool(1 + round % 5);
    if (round % 2)
      pool->run(
          3, [](void*, int64_t, int) {}, nullptr);
  }
  EXPECT_EQ(ThreadPool::create(0).error().code, Code::bad_argument);
  EXPECT_EQ(ThreadPool::create(-1).error().code, Code::bad_argument);
  EXPECT_EQ(ThreadPool::create(1025).error().code, Code::bad_argument);
  EXPECT_EQ(ThreadPool::create(0, run_on_host, nullptr).error().code, Code::bad_argument);
}

// Stops the work after some tasks.
struct Stopping final : Supervisor {
  std::atomic<int64_t> done = 0;
  int64_t after = 0;
  bool is_cancelled() const noexcept override { return done >= after; }
  void advance(uint64_t) override {}
  void set_unit_progress(double) override {}
  void commit() noexcept override { after = INT64_MAX; }
  bool is_committed() const noexcept override { return after == INT64_MAX; }
  [[noreturn]] void throw_cancelled() override { throw Cancelled{"stopped"}; }
  static void task(void* context, int64_t, int) { ++static_cast<Stopping*>(context)->done; }
};

TEST(ThreadPool, ACancelledCallSkipsTasksThatHaveNotBegun) {
  for (const int threads : {1, 3}) {
    const auto pool = make_pool(threads);
    for (const int64_t after : {0, 1, 10, 500}) {
      Stopping call;
      call.after = after;
      supervisor = &call;
      EXPECT_THROW(pool->run(1000, Stopping::task, &call), Cancelled);
      supervisor = nullptr;
      EXPECT_GE(call.done, after);
      EXPECT_LT(call.done, after + threads);  // only tasks that had begun
      check_runs(*pool, 1);                   // the pool is still usable
    }
    Stopping committed;
    committed.after = INT64_MAX;
    supervisor = &committed;
    pool->run(1000, Stopping::task, &committed);
    supervisor = nullptr;
    EXPECT_EQ(committed.done, 1000);
  }
  Host host{2};
  auto pool = ThreadPool::create(2, run_on_host, &host);
  ASSERT_TRUE(pool);
  Stopping call;
  call.after = 5;
  supervisor = &call;
  EXPECT_THROW((*pool)->run(1000, Stopping::task, &call), Cancelled);
  supervisor = nullptr;
  EXPECT_LT(call.done, 8);
  check_runs(**pool, 1);
}

#ifdef STW_SANITIZED
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool sanitized = false;
#endif

TEST(ThreadPool, ASystemWithoutThreadsIsAnError) {
  if (sanitized) GTEST_SKIP() << "sanitizers need the address space that this test takes away";
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  long pages = 0;
  FILE* status = fopen("/proc/self/statm", "r");
  if (!status || fscanf(status, "%ld", &pages) != 1) GTEST_SKIP() << "no /proc";
  fclose(status);
  const rlimit tight{static_cast<rlim_t>(pages) * 4096 + (rlim_t{200} << 20), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  auto pool = ThreadPool::create(1000);
  setrlimit(RLIMIT_AS, &before);
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().code, Code::host_out_of_memory);
  EXPECT_NE(pool.error().message.find("wanted 999 workers"), std::string::npos) << pool.error().message;
  check_runs(*make_pool(4), 1);
}

}  // namespace
}  // namespace stw::thread_pool_test
