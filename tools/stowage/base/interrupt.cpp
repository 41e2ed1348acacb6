#include "base/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "base/failure.h"

namespace command {
namespace {

std::atomic<int> signals{0}, first_signal{0};
std::atomic<bool> has_checkpoint{false}, saves{true};
std::atomic<stw_trainer*> to_cancel{nullptr};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<stw_trainer*>::is_always_lock_free);

template <size_t size>
void tell_from_handler(const char (&text)[size]) {
  // If this fails, nothing can be done.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, size - 1);
}

// stw_trainer_cancel is one atomic addition. Therefore a signal handler may call it.
void handle(int signal) {
  if (signals.fetch_add(1) == 0) {
    first_signal = signal;
    if (saves.load())
      tell_from_handler("\nstowage: stopping this step, then saving; once more to end at once\n");
    else tell_from_handler("\nstowage: stopping; once more to end at once\n");
    if (stw_trainer* trainer = to_cancel.load()) stw_trainer_cancel(trainer);
    return;
  }
  // The kernel, the shell and a service manager may all send SIGHUP, also after SIGTERM. It never counts as
  // the second signal.
  if (signal == SIGHUP) return;
  if (has_checkpoint.load())
    tell_from_handler("\nstowage: error: ended at once; the last complete checkpoint is unharmed\n");
  else tell_from_handler("\nstowage: error: ended at once; nothing was saved yet\n");
  ::_exit(exit_of_signal(signal));
}

void end_at_once(int signal) { ::_exit(exit_of_signal(signal)); }

bool is_ignored_now(int signal) {
  struct sigaction before = {};
  return sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN;
}

void install(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  // Whether a signal was ignored when the process began, as under nohup or in the background.
  static const bool is_ignored[] = {is_ignored_now(SIGINT), is_ignored_now(SIGTERM), is_ignored_now(SIGHUP)};
  if (!is_ignored[0]) sigaction(SIGINT, &action, nullptr);
  if (!is_ignored[1]) sigaction(SIGTERM, &action, nullptr);
  // A further SIGHUP must not end a run that only has to return its exit code.
  if (handler == end_at_once && signals.load() > 0) action.sa_handler = SIG_IGN;
  if (!is_ignored[2]) sigaction(SIGHUP, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt(bool saves_then) {
  signals = 0;
  first_signal = 0;
  saves = saves_then;
  has_checkpoint = false;
  install(handle);
}

Interrupt::~Interrupt() {
  to_cancel = nullptr;
  install(end_at_once);
}

int Interrupt::exit_code() const {
  return first_signal.load() == 0 ? 0 : exit_of_signal(first_signal.load());
}

void Interrupt::saved() { has_checkpoint = true; }

void Interrupt::cancels(stw_trainer* trainer) { to_cancel = trainer; }

void end_at_signals() { install(end_at_once); }

void outlive_file_limits() { ::signal(SIGXFSZ, SIG_IGN); }

void outlive_failed_writes() { ::signal(SIGPIPE, SIG_IGN); }

}  // namespace command
