#include "data/new_head.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/failure.h"
#include "base/messages.h"
#include "base/units.h"
#include "base/utf8.h"

namespace command {

std::string count_and_labels(std::span<const std::string> labels) {
  constexpr size_t most_shown = 6;
  std::vector<std::string> shown;
  for (const std::string& label : labels.first(std::min(labels.size(), most_shown)))
    shown.push_back(shortened(label));
  return fmt::format("{} labels ({}{})", grouped(labels.size()), fmt::join(shown, ", "),
                     labels.size() > most_shown ? ", …" : "");
}

void with_advice(const std::function<void()>& check) {
  try {
    check();
  } catch (const Failure& failure) {
    throw Failure(failure.exit_code,
                  fmt::format("{}; --new-head draws a new head for the labels of the data", failure.what()));
  }
}

}  // namespace command
