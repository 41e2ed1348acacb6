#include "pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "failure.h"
#include "units.h"

namespace command {
namespace {

using Answers = std::array<Example, 2>;

// To so many tokens in all. Returns whether it was longer.
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

}  // namespace

bool holds_pairs(const DataSource& data) {
  if (!data.holds_objects()) return false;
  bool found = false;
  data.for_objects([&](std::string_view text, const std::string& place) {
    const JsonValue object = read_object(text, place, {});
    const JsonView view(object, place);
    found = object.kind == JsonValue::Kind::object && (!view.at("chosen").is_null() || !view.at("rejected").is_null());
    return false;
  });
  return found;
}

std::string left_out(const ExampleCounts& counts) {
  return (!counts.unprompted ? "" : fmt::format("; {} without a prompt, which is what both answers begin with", grouped(counts.unprompted))) +
         (!counts.longer ? "" : fmt::format("; {} longer than a sample, which cuts them", grouped(counts.longer))) +
         (!counts.unlearned ? "" : fmt::format("; {} more are left out, whose answers are alike, empty, or cut away", grouped(counts.unlearned)));
}

Examples read_pairs(const DataSource& data, const ExampleReader& reader, uint64_t sequence, Order order) {
  std::vector<Answers> list;
  Examples all;
  ExampleCounts& counts = all.counts;
  data.for_objects([&](std::string_view text, const std::string& place) {
    ExampleReader::Pair pair = reader.pair(text, place);
    counts.unprompted += !pair.has_prompt;
    list.push_back(std::move(pair.answers));
    return true;
  });
  shuffle(list, order);
  for (Answers& pair : list) {
    const bool was_cut = cut(pair, static_cast<size_t>(sequence) + 1);
    if (pair[0].tokens == pair[1].tokens || !is_learned(pair[0]) || !is_learned(pair[1])) {
      counts.unlearned += 1;
      continue;
    }
    counts.examples += 1;
    counts.longer += was_cut;
    for (const Example& answer : pair) counts.learned += add(all, answer, UINT64_MAX);
  }
  if (counts.examples == 0)
    throw Failure(exit_failed, fmt::format("{}: of no pair there are two answers left in the {} tokens of a sample; use a longer --seq", data.name(), sequence));
  return all;
}

}  // namespace command
