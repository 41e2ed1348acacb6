#include "base/work_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <memory>
#include <string>

#include "base/messages.h"
#include "base/terminal.h"

namespace command {
namespace {

constexpr uint32_t interval_milliseconds = 200;

struct Destroy {
  void operator()(stw_watch* watch) const { stw_watch_destroy(watch); }
};

bool is_shown = false;
std::function<void(const stw_watch_info&)> draw_step;

// Null: another line shows this work.
const char* name_of(uint32_t work) {
  switch (work) {
    case STW_WORK_PLAN: return "planning";
    case STW_WORK_OPEN_DATASET: return "reading the data";
    case STW_WORK_CREATE_TRAINER: return "making the trainer";
    case STW_WORK_CALIBRATE: return "measuring";
    case STW_WORK_SAVE: return "saving";
    case STW_WORK_RESTORE: return "reading the checkpoint";
    case STW_WORK_EXPORT: return "writing the model";
    default: return nullptr;
  }
}

int32_t draw(void*, const stw_watch_info* now) noexcept {
  try {
    if (now->work == STW_WORK_STEP && draw_step) draw_step(*now);
    const char* const name = name_of(now->work);
    if (!name || !is_terminal(STDERR_FILENO)) return 0;
    const std::string text = now->total > 0 ? fmt::format("{}  {:.0f} %", name, std::floor(100 * now->share))
                                            : fmt::format("{} ...", name);
    write_to_stderr("\r" + text.substr(0, columns_of(STDERR_FILENO) - 1) + "\x1b[K");
    is_shown = true;
  } catch (...) {  // a message must not end the work that it is about
  }
  return 0;
}

std::unique_ptr<stw_watch, Destroy> make_watch() {
  if (!is_terminal(STDERR_FILENO) && !is_terminal(STDOUT_FILENO)) return nullptr;
  stw_watch_options options{};
  options.struct_size = sizeof options;
  options.set_mask = STW_SET_INTERVAL;
  options.interval_milliseconds = interval_milliseconds;
  options.notify = draw;
  stw_watch* watch = nullptr;
  call([&](stw_error* error) { return stw_watch_create(&watch, &options, error); });
  return std::unique_ptr<stw_watch, Destroy>(watch);
}

}  // namespace

stw_watch* work_watch() {
  static const std::unique_ptr<stw_watch, Destroy> watch = make_watch();
  return watch.get();
}

void end_work_line() {
  if (is_shown) write_to_stderr("\r\x1b[K");
  is_shown = false;
}

StepsDrawnBy::StepsDrawnBy(std::function<void(const stw_watch_info&)> draw) { draw_step = std::move(draw); }
StepsDrawnBy::~StepsDrawnBy() { draw_step = nullptr; }

}  // namespace command
