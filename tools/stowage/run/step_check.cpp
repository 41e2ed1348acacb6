#include "run/step_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <tuple>
#include <vector>

#include "base/failure.h"
#include "base/files.h"
#include "run/checkpoint_header.h"

namespace command {
namespace {

// The first byte in which two files differ. Empty if they are equal.
std::optional<uint64_t> first_difference(const std::string& one, const std::string& other) {
  std::ifstream a(one, std::ios::binary), b(other, std::ios::binary);
  std::vector<char> x(1 << 20), y(1 << 20);
  for (uint64_t at = 0;; at += x.size()) {
    for (auto [file, chunk, path] : {std::tuple{&a, &x, &one}, {&b, &y, &other}}) {
      errno = 0;
      file->read(chunk->data(), static_cast<std::streamsize>(chunk->size()));
      // also if the file could not be opened
      if (!file->eof() && !*file)
        throw Failure(exit_failed,
                      fmt::format("{}: cannot read: {}", *path, std::strerror(errno ? errno : EIO)));
    }
    const std::streamsize n = std::min(a.gcount(), b.gcount());
    for (std::streamsize i = 0; i < n; ++i)
      if (x[static_cast<size_t>(i)] != y[static_cast<size_t>(i)]) return at + static_cast<uint64_t>(i);
    if (a.gcount() != b.gcount()) return at + static_cast<uint64_t>(n);
    if (n == 0) return std::nullopt;
  }
}

}  // namespace

StepCheck::StepCheck(uint64_t every, const RunFolder& folder, stw_trainer* trainer)
    : every_(every),
      trainer_(trainer),
      before_(folder.check_before()),
      once_(folder.check_once()),
      twice_(folder.check_twice()) {}

StepCheck::~StepCheck() {
  ::unlink(before_.c_str());
  if (differs_) return;
  ::unlink(once_.c_str());
  ::unlink(twice_.c_str());
}

void StepCheck::save(const std::string& path) const {
  call([&](stw_error* error) { return stw_trainer_save(trainer_, path.c_str(), error); });
}

void StepCheck::restore() const {
  call([&](stw_error* error) { return stw_trainer_restore(trainer_, before_.c_str(), error); });
}

void StepCheck::compare() {
  save(twice_);
  const auto differs = first_difference(once_, twice_);
  differs_ = differs.has_value();
  if (differs)
    throw Failure(
        exit_failed,
        fmt::format("the same step gave other bytes the second time: {} and {} differ from byte {} on ({}); "
                    "the memory or the processor may be faulty",
                    once_, twice_, *differs, checkpoint_section(once_, *differs)));
  checked_ += 1;
}

}  // namespace command
