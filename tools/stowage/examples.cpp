#include "examples.h"

#include <fmt/format.h>
#include <stowage.h>

#include <algorithm>
#include <string_view>

#include "failure.h"

namespace command {

uint64_t add(Examples& all, const Example& example, uint64_t reach) {
  uint64_t counted = 0;
  auto range = example.learned.begin();
  for (size_t i = 0; i < example.tokens.size(); ++i) {
    if (range != example.learned.end() && i >= range->second) ++range;
    const bool learned = i > 0 && range != example.learned.end() && i >= range->first;
    counted += learned && i <= reach;
    all.marks += static_cast<char>((learned ? STW_MARK_TARGET : 0) | (i == 0 ? STW_MARK_BEGIN : 0));
  }
  all.tokens.insert(all.tokens.end(), example.tokens.begin(), example.tokens.end());
  return counted;
}

Examples read_examples(const DataSource& data, const ExampleReader& reader, uint64_t sequence, Order order) {
  const std::string& path = data.name();
  std::vector<Example> list;
  data.for_objects([&](std::string_view text, const std::string& place) {
    list.push_back(reader.example(text, place));
    return true;
  });
  if (list.empty()) throw Failure(exit_failed, fmt::format("{}: expected a line for each example, found none", path));
  shuffle(list, order);
  Examples all;
  ExampleCounts& counts = all.counts;
  counts.examples = list.size();
  for (const Example& example : list) {
    counts.longer += example.tokens.size() > sequence + 1;
    counts.unlearned += example.learned[0].first > sequence;
    counts.learned += add(all, example, sequence);
  }
  if (counts.learned == 0)
    throw Failure(exit_failed, fmt::format("{}: nothing is learned: every completion begins behind the {} tokens of a sample; use a longer --seq", path, sequence));
  return all;
}

}  // namespace command
