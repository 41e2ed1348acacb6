#include "reference.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "failure.h"
#include "files.h"
#include "messages.h"
#include "units.h"

namespace command {
namespace {

void write(const Trainer& trainer, const OpenData& data, const std::string& path) {
  call([&](stw_error* error) { return stw_trainer_write_reference(trainer.get(), data.dataset.get(), path.c_str(), error); });
}

}  // namespace

References::~References() {
  for (const auto& [from, to] : made_) std::remove(from.c_str());
}

void References::open(OpenData& data, const std::string& of_run, const std::string& file, const Trainer& trainer) {
  if (!of_run.empty() && is_there(of_run)) {
    data.dataset = data.against(of_run);
    if (!is_same(of_run, file)) copied_.push_back({of_run, file});
    return;
  }
  const stw_dataset_info info = query(data.dataset);
  tell("reference   what the model says now of {} pairs in {} tokens\n", grouped(data.counts.examples), grouped(info.training_tokens + info.evaluation_tokens));
  std::fflush(stdout);
  const std::string made = fmt::format("{}.tmp.{}.0", file, ::getpid());
  made_.push_back({made, file});
  write(trainer, data, made);
  data.dataset = data.against(made);
}

void References::keep() {
  for (const auto& [from, to] : made_)
    if (std::rename(from.c_str(), to.c_str()) != 0) throw Failure(exit_failed, fmt::format("{}: cannot move to {}: {}", from, to, std::strerror(errno)));
  made_.clear();
  for (const auto& [from, to] : copied_) {
    std::error_code problem;
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, problem);
    if (problem) throw Failure(exit_failed, fmt::format("{}: cannot copy to {}: {}", from, to, problem.message()));
  }
  copied_.clear();
}

TemporaryReference::TemporaryReference(const Trainer& trainer, const OpenData& data) {
  std::error_code problem;
  path_ = (std::filesystem::temp_directory_path(problem) / "stowage-reference-XXXXXX").string();
  const int file = ::mkstemp(path_.data());
  if (file < 0) throw Failure(exit_failed, fmt::format("{}: cannot create it: {}", path_, std::strerror(errno)));
  ::close(file);
  try {
    write(trainer, data, path_);
  } catch (...) {
    std::remove(path_.c_str());
    throw;
  }
}

TemporaryReference::~TemporaryReference() { std::remove(path_.c_str()); }

}  // namespace command
