#include "data/examples.h"

#include <fmt/format.h>
#include <stowage.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/failure.h"
#include "base/units.h"

namespace command {
namespace {

struct Reason {
  const char *key, *of_examples, *of_pairs;
};
constexpr Reason reasons[left_out_count] = {
    {"empty", "empty", "with an empty answer"},
    {"marked", "marked out of the loss", "marked out of the loss"},
    {"no_room", "whose prompts fill a sample", "whose answers are cut away"},
    {"alike", "alike", "whose answers are alike"},
    {"bad", "bad", "bad"}};  // in the order of LeftOut

// The index of the first token that can be learned, which needs a token before it. Nothing if there is none.
std::optional<size_t> first_learned(const Example& example) {
  for (const auto& [begin, end] : example.learned)
    if (const size_t first = std::max<size_t>(begin, 1); first < std::min(end, example.tokens.size()))
      return first;
  return std::nullopt;
}

// The least --seq that helps if no example is left because samples are too short. `first` is not empty. For
// each example whose learned tokens all lie past the end of a sample, it has the index of the first of them.
// The result reaches this token in two examples, so that one of them can be held out. If there is only one
// such example, it reaches the token in that one.
uint64_t least_sequence(std::vector<size_t> first) {
  std::sort(first.begin(), first.end());
  return first[std::min<size_t>(1, first.size() - 1)];
}

}  // namespace

uint64_t left_out(const ExampleCounts& counts) {
  return std::accumulate(counts.left_out.begin(), counts.left_out.end(), uint64_t{0});
}

std::string reasons_left_out(const ExampleCounts& counts, bool of_pairs) {
  std::string why;
  for (size_t i = 0; i < left_out_count; ++i)
    if (counts.left_out[i])
      why += fmt::format("{}{} {}", why.empty() ? "" : ", ", grouped(counts.left_out[i]),
                         of_pairs ? reasons[i].of_pairs : reasons[i].of_examples);
  return why;
}

std::string left_out_suffix(const ExampleCounts& counts, bool of_pairs) {
  const uint64_t all = left_out(counts);
  return all ? fmt::format("; {} more left out: {}", grouped(all), reasons_left_out(counts, of_pairs)) : "";
}

std::string left_out_members(const ExampleCounts& counts) {
  std::string members = fmt::format("\"examples\":{},\"left_out\":{{", counts.examples);
  for (size_t i = 0; i < left_out_count; ++i) {
    if (i == static_cast<size_t>(LeftOut::bad) && counts.left_out[i] == 0) continue;  // newer than the others
    members += fmt::format("{}\"{}\":{}", i ? "," : "", reasons[i].key, counts.left_out[i]);
  }
  return members + "}";
}

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

std::string longer_samples(uint64_t least, uint64_t longest, uint64_t positions) {
  if (least > positions)
    return fmt::format("samples of {} tokens would help, but the model has {} positions: shorten the prompts",
                       grouped(least), grouped(positions));
  return fmt::format(
      "use a longer --seq: {} is the least that helps{}", least,
      longest > least && longest <= positions ? fmt::format(", {} has room for all of them", longest) : "");
}

Examples read_examples(const DataSource& data, const ExampleReader& reader, uint64_t sequence,
                       uint64_t positions, Order order) {
  const std::string& path = data.name();
  std::vector<Example> list;
  data.for_objects([&](std::string_view text, const std::string& place) {
    list.push_back(reader.example(text, place));
    list.back().origin = {list.size(), place};
    return true;
  });
  if (list.empty())
    throw Failure(exit_failed, fmt::format("{}: expected a line for each example, found none", path));
  shuffle(list, order);
  Examples all;
  ExampleCounts& counts = all.counts;
  std::vector<size_t> beyond;  // the first learned token of each example that has no room
  size_t longest = 0;
  for (const Example& example : list) {
    const std::optional<size_t> first = first_learned(example);
    std::optional<LeftOut> left_out = example.left_out;
    if (!left_out && !first) left_out = LeftOut::empty;
    if (!left_out && *first > sequence)
      left_out = LeftOut::no_room, beyond.push_back(*first),
      longest = std::max(longest, example.tokens.size() - 1);
    if (left_out) {
      counts.left_out[static_cast<size_t>(*left_out)] += 1;
      continue;
    }
    counts.examples += 1;
    counts.longer += example.tokens.size() > sequence + 1;
    counts.learned += add(all, example, sequence);
    all.origins.push_back(example.origin);
  }
  if (counts.examples == 0)
    throw Failure(
        exit_failed,
        fmt::format("{}: nothing to learn in samples of {} tokens: all {} examples are left out, {}; {}",
                    path, sequence, grouped(left_out(counts)), reasons_left_out(counts, false),
                    beyond.empty()
                        ? "expected completions, texts, or messages of the assistant that are learned"
                        : longer_samples(least_sequence(std::move(beyond)), longest, positions)));
  return all;
}

}  // namespace command
