#include "data/pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/failure.h"
#include "base/units.h"

namespace command {
namespace {

using Answers = std::array<Example, 2>;

// Cuts a pair to `most` tokens in all. Returns whether it was longer.
bool cut(Answers& pair, size_t most) {
  const size_t first = pair[0].tokens.size(), second = pair[1].tokens.size();
  if (first + second <= most) return false;
  const size_t half = most / 2, left_by_second = most - std::min(second, most - half);
  const size_t of_first = std::min(first, left_by_second);
  pair[0].tokens.resize(of_first);
  pair[1].tokens.resize(std::min(second, most - of_first));
  return true;
}

bool is_learned(const Example& answer) {
  return std::any_of(answer.learned.begin(), answer.learned.end(), [&](const auto& range) {
    return std::max<size_t>(range.first, 1) < std::min(range.second, answer.tokens.size());
  });
}

// The length of the shortest sample in which learned tokens of both answers are left. A sample of n tokens
// has room for n + 1 tokens of a pair, because the last one is only a target.
size_t least_sequence(const Answers& pair) {
  size_t too_few = 0, enough = pair[0].tokens.size() + pair[1].tokens.size();
  while (too_few + 1 < enough) {
    const size_t most = (too_few + enough) / 2;
    Answers now = pair;
    cut(now, most);
    (is_learned(now[0]) && is_learned(now[1]) && now[0].tokens != now[1].tokens ? enough : too_few) = most;
  }
  return enough - 1;
}

}  // namespace

bool holds_pairs(const DataSource& data) {
  if (!data.holds_members()) return false;
  bool found = false;
  data.for_objects([&](std::string_view text, const std::string& place) {
    const Outline object = read_outline(text, place);
    found = object.has("chosen") || object.has("rejected");
    return false;
  });
  return found;
}

std::string pairs_suffix(const ExampleCounts& counts) {
  return (!counts.unprompted
              ? ""
              : fmt::format("; {} without a prompt: the common beginning of both answers is the prompt",
                            grouped(counts.unprompted))) +
         (!counts.longer ? "" : fmt::format("; {} cut to the length of a sample", grouped(counts.longer))) +
         left_out_suffix(counts, true);
}

Examples read_pairs(const DataSource& data, const ExampleReader& reader, uint64_t sequence,
                    uint64_t positions, Order order) {
  const std::string& path = data.name();
  std::vector<ExampleReader::Pair> list;
  Examples all;
  ExampleCounts& counts = all.counts;
  data.for_objects([&](std::string_view text, const std::string& place) {
    list.push_back(reader.pair(text, place));
    counts.unprompted += !list.back().has_prompt;
    list.back().answers[0].origin = {list.size(), place};
    return true;
  });
  if (list.empty())
    throw Failure(exit_failed, fmt::format("{}: expected a line for each pair, found none", path));
  shuffle(list, order);
  std::vector<Answers> too_long;
  for (ExampleReader::Pair& one : list) {
    Answers& pair = one.answers;
    std::optional<LeftOut> left_out = one.left_out;
    if (!left_out && pair[0].tokens == pair[1].tokens) left_out = LeftOut::alike;
    if (!left_out && (!is_learned(pair[0]) || !is_learned(pair[1]))) left_out = LeftOut::empty;
    const auto most = static_cast<size_t>(sequence) + 1;
    const Answers whole = pair[0].tokens.size() + pair[1].tokens.size() > most ? pair : Answers();
    const bool was_cut = cut(pair, most);
    if (!left_out && (pair[0].tokens == pair[1].tokens || !is_learned(pair[0]) || !is_learned(pair[1])))
      left_out = LeftOut::no_room, too_long.push_back(whole);
    if (left_out) {
      counts.left_out[static_cast<size_t>(*left_out)] += 1;
      continue;
    }
    counts.examples += 1;
    counts.longer += was_cut;
    for (const Example& answer : pair)
      counts.learned += add(all, answer, UINT64_MAX), all.origins.push_back(pair[0].origin);
  }
  if (counts.examples == 0) {
    std::vector<size_t> least;
    for (const Answers& pair : too_long) least.push_back(least_sequence(pair));
    std::sort(least.begin(), least.end());
    throw Failure(exit_failed,
                  fmt::format("{}: no pair has two answers left in the {} tokens of a sample: all {} pairs "
                              "are left out, {}; {}",
                              path, sequence, grouped(left_out(counts)), reasons_left_out(counts, true),
                              least.empty() ? "expected pairs of answers that differ"
                                            : longer_samples(least[std::min<size_t>(1, least.size() - 1)], 0,
                                                             positions)));
  }
  return all;
}

}  // namespace command
