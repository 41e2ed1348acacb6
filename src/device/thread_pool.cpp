#include "src/device/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <string>
#include <system_error>

#include "src/base/float_mode.h"
#include "src/base/uncancelled.h"
#include "src/device/machine.h"

namespace stw {
namespace {

// While it lives, the calling thread and threads that it creates receive no signals except those of their own
// faults.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
      sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

constexpr std::chrono::microseconds longest_spin{50};

// Leaves the core's resources and power to other threads for some cycles.
void pause_core() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

Status check_threads(int threads) {
  if (threads >= 1 && threads <= ThreadPool::max_threads) return ok();
  return Error{Code::bad_argument, "threads: expected 1 to " + std::to_string(ThreadPool::max_threads) +
                                       ", found " + std::to_string(threads)};
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int threads) {
  STW_TRY(check_threads(threads));
  std::unique_ptr<ThreadPool> pool(new ThreadPool(threads, nullptr, nullptr));
  try {
    pool->start_workers();
  } catch (const std::system_error& error) {
    return Error{Code::host_out_of_memory,
                 "cannot start a thread: wanted " + std::to_string(threads - 1) + " workers, started " +
                     std::to_string(pool->workers_.size()) + ": " + error.code().message(),
                 error.code().value()};
  }
  return pool;
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int threads, host_run run, void* user) {
  STW_TRY(check_threads(threads));
  assert(run);
  return std::unique_ptr<ThreadPool>(new ThreadPool(threads, run, user));
}

ThreadPool::ThreadPool(int threads, host_run host, void* user)
    : threads_(threads),
      host_(host),
      user_(user),
      spins_(!host && threads <= processor_count()),
      holders_(std::make_unique<std::atomic<std::thread::id>[]>(static_cast<size_t>(threads))),
      shares_(std::make_unique<Share[]>(static_cast<size_t>(threads))) {}

void ThreadPool::start_workers() {
  const SignalsBlocked blocked;
  workers_.reserve(static_cast<size_t>(threads_ - 1));
  for (int thread = 1; thread < threads_; ++thread) workers_.emplace_back([this, thread] { work(thread); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    assert(!busy_);
    stopping_ = true;
    ++job_;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

kernels::Parallel ThreadPool::parallel() {
  return {this, threads_, [](void* self, int64_t tasks, void (*task)(void*, int64_t, int), void* context) {
            static_cast<ThreadPool*>(self)->run(tasks, task, context);
          }};
}

int ThreadPool::thread_of_caller() const {
  const std::thread::id caller = std::this_thread::get_id();
  for (int thread = 0; thread < threads_; ++thread)
    if (holders_[thread].load(std::memory_order_relaxed) == caller) return thread;
  return -1;
}

void ThreadPool::run(int64_t tasks, void (*task)(void*, int64_t, int), void* context) {
  if (tasks <= 0) return;
  std::unique_lock lock(mutex_);
  if (busy_) {
    if (const int thread = thread_of_caller(); thread >= 0) {
      lock.unlock();
      for (int64_t index = 0; index < tasks; ++index) task(context, index, thread);
      return;
    }
    ++queued_;
    free_.wait(lock, [&] { return !busy_; });
    --queued_;
  }
  busy_ = true;
  task_ = task;
  context_ = context;
  tasks_ = tasks;
  supervisor_ = supervisor;
  cut_short_.store(false, std::memory_order_relaxed);
  share_out(tasks);
  unfinished_.store(tasks, std::memory_order_relaxed);
  untaken_.store(tasks, std::memory_order_release);
  const int helpers = static_cast<int>(std::min<int64_t>(tasks, threads_)) - 1;
  if (helpers > 0) ++job_;
  // Workers that are awake check `job_` before they sleep.
  const int woken = std::clamp(helpers - (threads_ - 1 - sleepers_), 0, sleepers_);
  const bool all_woken = woken == sleepers_;
  lock.unlock();

  if (host_ && helpers > 0) {
    const FloatMode mode;  // restores the mode after the callback
    host_(user_, static_cast<uint32_t>(helpers + 1), run_lane, this);
  } else if (woken > 0 && all_woken) {
    wake_.notify_all();
  } else {
    for (int worker = 0; worker < woken; ++worker) wake_.notify_one();
  }
  // After a host's executor no task is left, unless it skipped a lane.
  holders_[0].store(std::this_thread::get_id(), std::memory_order_relaxed);
  take_tasks(0);

  const auto done = [&] { return unfinished_.load() == 0; };
  const bool done_soon = spin_until(done);
  lock.lock();
  if (!done_soon) {
    // An exchange, not a store: QEMU, emulating ARM on x86, moves a later load before STLR. This thread would
    // then sleep forever.
    caller_sleeps_.exchange(true);
    done_.wait(lock, done);
    caller_sleeps_ = false;
  }
  holders_[0].store({}, std::memory_order_relaxed);
  busy_ = false;
  const bool queued = queued_ > 0, cut_short = cut_short_.load(std::memory_order_relaxed);
  lock.unlock();
  if (queued) free_.notify_one();
  if (cut_short) supervisor->throw_cancelled();
}

// A lane is one index of the host's executor, and is the thread number of its tasks. The host runs each lane
// once, so that no two running tasks share a number.
void ThreadPool::run_lane(void* self, uint32_t lane) {
  const Uncancelled thread;
  const FloatMode mode;
  auto* pool = static_cast<ThreadPool*>(self);
  pool->holders_[lane].store(std::this_thread::get_id(), std::memory_order_relaxed);
  pool->take_tasks(static_cast<int>(lane));
  pool->holders_[lane].store({}, std::memory_order_relaxed);
}

void ThreadPool::work(int thread) {
  // An unwound worker would never count its task as done.
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  const FloatMode mode;  // a thread inherits the mode of its creator
  holders_[thread].store(std::this_thread::get_id(), std::memory_order_relaxed);
  uint64_t seen = 0;
  const auto called = [&] { return job_.load() != seen; };
  for (;;) {
    if (!spin_until(called)) {
      std::unique_lock lock(mutex_);
      ++sleepers_;
      wake_.wait(lock, called);
      --sleepers_;
    }
    seen = job_.load();
    if (stopping_) return;
    take_tasks(thread);
  }
}

// Whether `done` became true within longest_spin.
template <class Done>
bool ThreadPool::spin_until(const Done& done) const {
  using Clock = std::chrono::steady_clock;
  if (!spins_) return done();
  const Clock::time_point end = Clock::now() + longest_spin;
  do {
    for (int look = 0; look < 32; ++look) {
      if (done()) return true;
      pause_core();
    }
  } while (Clock::now() < end);
  return false;
}

void ThreadPool::share_out(int64_t tasks) {
  const int64_t each = tasks / threads_, longer = tasks % threads_;  // the first ones have one more
  int64_t begin = 0;
  for (int64_t thread = 0; thread < threads_; ++thread) {
    Share& share = shares_[thread];
    share.next.store(begin, std::memory_order_relaxed);
    begin += each + (thread < longer ? 1 : 0);
    share.end = begin;
  }
}

// The caller has lowered `untaken_`, so that a task is left for it, in its own share or in another.
int64_t ThreadPool::next_task(int thread) {
  for (int victim = thread;; victim = victim + 1 == threads_ ? 0 : victim + 1) {
    Share& share = shares_[victim];
    if (share.next.load(std::memory_order_relaxed) >= share.end) continue;
    const int64_t index = share.next.fetch_add(1, std::memory_order_relaxed);
    if (index < share.end) return index;
  }
}

// A thread that lowers `untaken_` holds a task of the current job. Until that task is counted in
// `unfinished_`, the job cannot end, and its fields and shares cannot change. A worker that comes late lowers
// nothing and reads nothing.
void ThreadPool::take_tasks(int thread) {
  int64_t taken = 0;
  int64_t left = untaken_.load(std::memory_order_relaxed);
  while (left > 0) {
    if (!untaken_.compare_exchange_weak(left, left - 1, std::memory_order_acquire, std::memory_order_relaxed))
      continue;
    ++taken;
    if (supervisor_ && supervisor_->is_cancelled()) {
      cut_short_.store(true, std::memory_order_relaxed);  // before these tasks are counted below
      taken += untaken_.exchange(0);
      break;
    }
    task_(context_, next_task(thread), thread);
    left = untaken_.load(std::memory_order_relaxed);
  }
  if (taken == 0 || unfinished_.fetch_sub(taken) != taken) return;
  // The caller sets caller_sleeps_ and then reads unfinished_; this thread lowers unfinished_ and then reads
  // caller_sleeps_. All four accesses are sequentially consistent. So either the caller reads 0, or this
  // thread sees that the caller sleeps. Once this thread holds the lock, the caller waits for `done_`.
  if (!caller_sleeps_) return;
  const std::lock_guard lock(mutex_);
  done_.notify_one();
}

}  // namespace stw
