// The threads of the CPU kernels: workers that sleep until there is work, or the host's own executor.
//
// The caller of `run` takes tasks too. It depends on no worker: tasks are taken one by one, counted down, and at the
// end only those that a worker really took are waited for. Workers that wake late find the counter empty and sleep
// again. `run` does not allocate.
//
// Every thread has a share of the tasks, neighbours, and takes those first, then others': so rows stay from op to op in the caches of
// the thread that computed them, which matters most where processors have a last-level cache each.
//
// To be woken takes tens of microseconds, as long as an op of a small model; the next op comes after a few. So whoever
// waits looks out for `longest_spin` before it sleeps, where every thread has a processor of its own.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/contract/kernels.h"
#include "planner/base/check_in.h"
#include "planner/base/result.h"

namespace stw {

// The host's executor: calls task(context, index) once for every index in [0, tasks), on any threads, in any order, at
// once or one after the other, and returns when all are done.
typedef void (*host_run)(void* user, uint32_t tasks, void (*task)(void* context, uint32_t index), void* context);

class ThreadPool {
 public:
  static constexpr int max_threads = 1024;

  // `threads` - 1 workers and the caller of `run`. Signals of the process are never delivered to a worker.
  // Errors: bad_argument (threads outside [1, max_threads]); host_out_of_memory where the system refuses a thread.
  static Result<std::unique_ptr<ThreadPool>> create(int threads);
  // No threads of its own: at most `threads` tasks at once on the host's executor. `run` is not null.
  static Result<std::unique_ptr<ThreadPool>> create(int threads, host_run run, void* user);
  // No `run` may be under way.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  // Borrows this pool.
  kernels::Parallel parallel();

  // As in kernels::Parallel. A call from inside a task runs serially under the thread number of that task; a call from
  // another thread waits until the current one is done. So no two running tasks ever share a number. Where the caller's call is cancelled
  // (check_in.h), tasks that have not begun are left out, and Cancelled is thrown once those that have begun are done.
  void run(int64_t tasks, void (*task)(void* context, int64_t index, int thread), void* context);

 private:
  ThreadPool(int threads, host_run host, void* user);
  void start_workers();
  void work(int thread);
  void share_out(int64_t tasks);
  void take_tasks(int thread);
  int64_t next_task(int thread);
  template <class Done>
  bool spin_until(const Done& done) const;
  int thread_of_caller() const;
  static void run_lane(void* self, uint32_t lane);

  const int threads_;
  const host_run host_;  // null: workers
  void* const user_;
  const bool spins_;
  std::vector<std::thread> workers_;
  // Who runs tasks under a number now: fixed for workers, set during a run for the caller and the host's lanes.
  std::unique_ptr<std::atomic<std::thread::id>[]> holders_;

  // The current job. Written before `untaken_` is, and stable until `unfinished_` is 0.
  void (*task_)(void*, int64_t, int) = nullptr;
  void* context_ = nullptr;
  int64_t tasks_ = 0;
  const Supervisor* supervisor_ = nullptr;    // of the caller's call, or null
  std::atomic<bool> cut_short_ = false;       // tasks of the job were left out
  struct alignas(64) Share {
    std::atomic<int64_t> next = 0;
    int64_t end = 0;
  };
  std::unique_ptr<Share[]> shares_;   // of the threads
  alignas(64) std::atomic<int64_t> untaken_ = 0;
  alignas(64) std::atomic<int64_t> unfinished_ = 0;

  alignas(64) std::atomic<uint64_t> job_ = 0;    // number of the last job; written under `mutex_`
  std::atomic<bool> stopping_ = false;           // written before the last `job_`
  std::atomic<bool> caller_sleeps_ = false;      // until `done_`

  alignas(64) std::mutex mutex_;
  std::condition_variable wake_;   // workers: `job_` changed
  std::condition_variable done_;   // the caller: `unfinished_` is 0
  std::condition_variable free_;   // other callers: not `busy_`
  int sleepers_ = 0;               // workers that wait for `wake_`
  int queued_ = 0;                 // callers that wait for `free_`
  bool busy_ = false;
};

}  // namespace stw
