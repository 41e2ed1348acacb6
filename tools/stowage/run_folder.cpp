#include "run_folder.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "failure.h"
#include "files.h"

namespace command {

RunFolder::RunFolder(const std::string& path) : path_(path) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
}

void RunFolder::refuse_to_replace() const {
  for (const std::string& file : {checkpoint(), weights(), metrics()})
    if (is_there(file))
      throw Failure(exit_failed, fmt::format("{} exists already: continue that run with --resume {}, replace it with "
                                             "--overwrite, or give another --out",
                                             file, path_));
}

void RunFolder::make_writable() const {
  std::error_code problem;
  std::filesystem::create_directories(path_, problem);
  if (problem && !is_folder(path_))
    throw Failure(exit_failed, fmt::format("--out {}: cannot create the folder: {}", path_, problem.message()));
  if (!is_folder(path_)) throw Failure(exit_failed, fmt::format("--out {}: expected a folder, found a file", path_));
  std::string probe = path_ + "/.writable-XXXXXX";
  const int file = ::mkstemp(probe.data());
  if (file < 0)
    throw Failure(exit_failed, fmt::format("--out {}: cannot write into the folder: {}", path_, std::strerror(errno)));
  ::close(file);
  ::unlink(probe.c_str());
}

void RunFolder::clear() const {
  for (const std::string& file : {checkpoint(), weights(), metrics(), plan(), loss_curve()})
    if (::unlink(file.c_str()) != 0 && errno != ENOENT)
      throw Failure(exit_failed, fmt::format("{}: cannot remove: {}", file, std::strerror(errno)));
}

}  // namespace command
