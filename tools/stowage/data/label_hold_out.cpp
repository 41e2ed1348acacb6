#include "data/label_hold_out.h"

#include <stowage.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "base/messages.h"
#include "base/units.h"
#include "base/utf8.h"

namespace command {

std::vector<size_t> keeping_labels(std::span<const size_t> tokens, const LabelLists& labels) {
  std::set<uint32_t> seen;
  std::vector<bool> is_first(labels.size());  // the first text of a label
  for (size_t i = 0; i < labels.size(); ++i)
    for (const uint32_t label : labels[i])
      if (seen.insert(label).second) is_first[i] = true;
  // A fifth is more than the held-out tenth with the text at its border.
  const size_t enough = std::accumulate(tokens.begin(), tokens.end(), size_t{0}) / 5;
  size_t others = 0, count = 0;
  std::vector<bool> goes_ahead(labels.size());
  for (size_t i = labels.size(); i-- > 0 && (others < enough || count < 2);) {
    goes_ahead[i] = is_first[i];
    if (!is_first[i]) others += tokens[i], ++count;
  }
  std::vector<size_t> order(labels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_partition(order.begin(), order.end(), [&](size_t i) { return goes_ahead[i]; });
  return order;
}

void warn_of_unlearned_labels(const Examples& examples, uint64_t first_held_out,
                              std::span<const std::string> labels, uint32_t task, const std::string& path) {
  if (task == STW_TASK_NUMBER) return;
  std::vector<bool> is_there(labels.size());
  size_t document = 0;
  for (size_t token = 0; token < first_held_out; ++token) {
    const bool begins = (examples.marks[token] & STW_MARK_BEGIN) != 0;
    const size_t at = task == STW_TASK_TOKEN_LABEL ? token : document;
    document += begins;
    if (task == STW_TASK_LABELS && begins) {
      for (const uint32_t label : examples.lists[at]) is_there[label] = true;
    } else if (task == STW_TASK_TOKEN_LABEL || begins) {
      uint32_t label = 0;
      std::memcpy(&label, examples.labels.data() + at * sizeof label, sizeof label);
      if (label < labels.size()) is_there[label] = true;
    }
  }
  const auto missing = std::find(is_there.begin(), is_there.end(), false);
  if (missing == is_there.end()) return;
  const auto count = static_cast<uint64_t>(std::count(is_there.begin(), is_there.end(), false));
  complain(
      "stowage: warning: {}: {} of its labels, such as \"{}\", {} in no text that is trained on, and the "
      "model "
      "does not learn {}{}",
      path, grouped(count), shortened(labels[static_cast<size_t>(missing - is_there.begin())]),
      count == 1 ? "is" : "are", count == 1 ? "it" : "them",
      first_held_out < examples.tokens.size() ? "; --eval-batches 0 trains on all texts" : "");
}

}  // namespace command
