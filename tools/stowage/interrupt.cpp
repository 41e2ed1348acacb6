#include "interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "failure.h"

namespace command {
namespace {

std::atomic<int> signals{0};
std::atomic<stw_trainer*> to_cancel{nullptr};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<stw_trainer*>::is_always_lock_free);

template <size_t size>
void tell(const char (&text)[size]) {
  // Nothing can be done where even this fails.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, size - 1);
}

// stw_trainer_cancel only sets a flag: it may be called from a handler.
void handle(int) {
  if (signals.fetch_add(1) == 0) {
    tell("\nstowage: finishing this step, then saving; once more to end at once\n");
    if (stw_trainer* trainer = to_cancel.load()) stw_trainer_cancel(trainer);
    return;
  }
  tell("\nstowage: error: ended at once; the last complete checkpoint is unharmed\n");
  ::_exit(exit_failed);
}

void install(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  signals = 0;
  install(handle);
}

Interrupt::~Interrupt() {
  to_cancel = nullptr;
  install(SIG_DFL);
}

bool Interrupt::requested() const { return signals.load() > 0; }

void Interrupt::cancels(stw_trainer* trainer) { to_cancel = trainer; }

}  // namespace command
