#include "data/label_lists.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/repeated.h"

namespace command {
namespace {

// Writes numbers to a file, from its number `first` on.
bool write_at(int file, std::span<const float> numbers, uint64_t first) {
  std::span<const std::byte> bytes = std::as_bytes(numbers);
  auto offset = static_cast<off_t>(first * sizeof(float));
  while (!bytes.empty()) {
    const ssize_t written = repeated([&] { return ::pwrite(file, bytes.data(), bytes.size(), offset); });
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += written;
  }
  return true;
}

}  // namespace

void LabelLists::add(std::span<const uint32_t> labels) {
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  ends_.push_back(labels_.size());
}

std::span<const uint32_t> LabelLists::operator[](size_t text) const {
  const size_t begin = text == 0 ? 0 : ends_[text - 1];
  return std::span(labels_).subspan(begin, ends_[text] - begin);
}

bool write_targets(const LabelLists& lists, size_t width, int file) {
  constexpr uint64_t block = 4096 / sizeof(float);  // file systems have holes of whole pages
  const uint64_t all = uint64_t{lists.size()} * width;
  if (all > static_cast<uint64_t>(std::numeric_limits<off_t>::max()) / sizeof(float)) {
    errno = EFBIG;
    return false;
  }
  if (repeated([&] { return ::ftruncate(file, static_cast<off_t>(all * sizeof(float))); }) != 0) return false;
  std::vector<float> targets(block);  // of the block number `now`
  uint64_t now = 0;
  bool has_ones = false;
  const auto write = [&] {
    const uint64_t first = now * block;
    return !has_ones || write_at(file, std::span(targets).first(std::min(block, all - first)), first);
  };
  for (size_t text = 0; text < lists.size(); ++text)
    for (const uint32_t label : lists[text]) {
      const uint64_t at = uint64_t{text} * width + label;
      if (at / block != now) {
        if (!write()) return false;
        std::fill(targets.begin(), targets.end(), 0.0f);
        now = at / block, has_ones = false;
      }
      targets[at % block] = 1, has_ones = true;
    }
  return write();
}

}  // namespace command
