// The threads of CPU kernels: workers that sleep until there is work, or the host's own executor.
//
// The caller of `run` takes tasks too, and depends on no worker. Tasks are taken one by one and counted down;
// at the end the caller waits only for tasks that workers have taken. A worker that wakes late finds the
// counter at 0 and sleeps again. `run` does not allocate.
//
// Every thread has a share of adjacent tasks. It takes these first, then tasks of other shares. Rows thus
// stay in the same thread's caches from op to op, which matters most on processors with several last-level
// caches.
//
// Waking a thread takes tens of microseconds, as long as an op of a small model. The next op usually comes
// after a few microseconds. A waiting thread therefore spins for `longest_spin` before it sleeps, if every
// thread has a processor of its own.
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

// The host's executor. It calls task(context, index) once for every index in [0, tasks), on any threads, in
// any order, concurrently or not, and returns when all calls are done.
typedef void (*host_run)(void* user, uint32_t tasks, void (*task)(void* context, uint32_t index),
                         void* context);

class ThreadPool {
 public:
  static constexpr int max_threads = 1024;

  // Starts `threads` - 1 workers; the caller of `run` is one more thread. Workers receive no signals of the
  // process. Errors: bad_argument (threads outside [1, max_threads]); host_out_of_memory where the system
  // refuses a thread.
  static Result<std::unique_ptr<ThreadPool>> create(int threads);
  // Starts no threads: runs at most `threads` tasks at once on the host's executor. `run` must not be null.
  static Result<std::unique_ptr<ThreadPool>> create(int threads, host_run run, void* user);
  // No `run` may be under way.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  // Borrows this pool.
  kernels::Parallel parallel();

  // As in kernels::Parallel. A call from inside a task runs serially, with that task's thread number. A call
  // from another thread waits until the current one is done. No two running tasks therefore share a number.
  // If the caller's call is cancelled (check_in.h), tasks that have not begun are skipped, and Cancelled is
  // thrown once the others are done.
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
  // The thread that has each number. A worker keeps its number; the caller and the threads of the host's
  // executor have one only during a run.
  std::unique_ptr<std::atomic<std::thread::id>[]> holders_;

  // The current job. Written before `untaken_`, and unchanged until `unfinished_` is 0.
  void (*task_)(void*, int64_t, int) = nullptr;
  void* context_ = nullptr;
  int64_t tasks_ = 0;
  const Supervisor* supervisor_ = nullptr;  // of the caller's call, or null
  std::atomic<bool> cut_short_ = false;     // some tasks of the job were skipped
  struct alignas(64) Share {
    std::atomic<int64_t> next = 0;
    int64_t end = 0;
  };
  std::unique_ptr<Share[]> shares_;  // one for each thread
  alignas(64) std::atomic<int64_t> untaken_ = 0;
  alignas(64) std::atomic<int64_t> unfinished_ = 0;

  alignas(64) std::atomic<uint64_t> job_ = 0;  // number of the last job; written under `mutex_`
  std::atomic<bool> stopping_ = false;         // written before the last `job_`
  std::atomic<bool> caller_sleeps_ = false;    // the caller waits for `done_`

  alignas(64) std::mutex mutex_;
  std::condition_variable wake_;  // workers: `job_` changed
  std::condition_variable done_;  // the caller: `unfinished_` is 0
  std::condition_variable free_;  // other callers: not `busy_`
  int sleepers_ = 0;              // workers that wait for `wake_`
  int queued_ = 0;                // callers that wait for `free_`
  bool busy_ = false;
};

}  // namespace stw
