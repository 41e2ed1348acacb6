#include "evaluation/reference.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/failure.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/messages.h"
#include "base/units.h"
#include "evaluation/evaluation_line.h"

namespace command {
namespace {

// Writes the reference of the data to `path`. Calls `begin` before that, but after it has begun to handle
// signals. `answers`: as in EvaluationLine.
template <class Begin>
void write(const Trainer& trainer, stw_dataset* data, const std::string& path, bool answers,
           const Begin& begin) {
  Interrupt interrupt(false);
  interrupt.cancels(trainer.get());
  begin();
  const stw_status status =
      interrupt.requested()
          ? STW_CANCELLED
          : call(
                [&](stw_error* error) {
                  const EvaluationLine line(trainer.get(), "reference", answers);
                  return stw_trainer_write_reference(trainer.get(), data, path.c_str(), error);
                },
                STW_CANCELLED);
  interrupt.cancels(nullptr);
  if (status == STW_CANCELLED)
    throw Failure(interrupt.exit_code(), "stopped while the reference was computed; nothing of it was saved");
}

// Opens the data with that reference. Null if the reference has other pairs.
Dataset against(const OpenData& data, const std::string& path) {
  try {
    return data.against(path);
  } catch (const Failure& failure) {
    if (failure.status == STW_BAD_STATE) return nullptr;
    throw;
  }
}

}  // namespace

References::~References() {
  for (const auto& [from, to] : made_) std::remove(from.c_str());
}

void References::open(OpenData& data, const std::string& of_run, const std::string& file,
                      const Trainer& trainer) {
  const bool is_there_of_run = !of_run.empty() && is_there(of_run);
  if (Dataset opened = is_there_of_run ? against(data, of_run) : nullptr) {
    data.dataset = std::move(opened);
    if (!is_same(of_run, file)) copied_.push_back({of_run, file});
    return;
  }
  const stw_dataset_info info = query(data.dataset);
  const std::string made = file + unfinished;
  made_.push_back({made, file});
  write(trainer, data.dataset.get(), made, false, [&] {
    tell("reference   log-probabilities of the model for {} pairs in {} tokens{}\n",
         grouped(data.counts.examples), grouped(info.training_tokens + info.evaluation_tokens),
         is_there_of_run ? fmt::format("; {} belongs to other pairs", of_run) : "");
    std::fflush(stdout);
  });
  data.dataset = data.against(made);
}

void References::keep() {
  for (const auto& [from, to] : made_)
    if (std::rename(from.c_str(), to.c_str()) != 0)
      throw Failure(exit_failed, fmt::format("{}: cannot move to {}: {}", from, to, std::strerror(errno)));
  made_.clear();
  for (const auto& [from, to] : copied_) {
    std::error_code problem;
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, problem);
    if (problem)
      throw Failure(exit_failed, fmt::format("{}: cannot copy to {}: {}", from, to, problem.message()));
  }
  copied_.clear();
}

TemporaryReference::TemporaryReference() {
  std::error_code problem;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(problem);
  if (problem)
    throw Failure(exit_failed,
                  fmt::format("there is no folder for temporary files (TMPDIR): {}", problem.message()));
  path_ = (folder / "stowage-reference-XXXXXX").string();
  const int file = made_file(path_);
  if (file < 0)
    throw Failure(exit_failed, fmt::format("{}: cannot create it: {}", path_, std::strerror(errno)));
  ::close(file);
}

// The delegated constructor has made the file, and the destructor removes it even if the work here fails.
TemporaryReference::TemporaryReference(const Trainer& trainer, stw_dataset* data) : TemporaryReference() {
  write(trainer, data, path_, true, [] {});
}

TemporaryReference::TemporaryReference(stw_trainer* trainer, stw_dataset* data) : TemporaryReference() {
  call([&](stw_error* error) { return stw_trainer_write_reference(trainer, data, path_.c_str(), error); });
}

TemporaryReference::~TemporaryReference() { std::remove(path_.c_str()); }

}  // namespace command
