#include "evaluation/entities.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

namespace command {
namespace {

bool ends(const Tag& before, const Tag& tag) {
  if (before.kind == 'O') return false;
  if (before.kind == 'E' || before.kind == 'S') return true;
  return tag.kind == 'B' || tag.kind == 'S' || tag.kind == 'O' || before.type != tag.type;
}

bool begins(const Tag& before, const Tag& tag) {
  if (tag.kind == 'O') return false;
  if (tag.kind == 'B' || tag.kind == 'S') return true;
  return before.kind == 'E' || before.kind == 'S' || before.kind == 'O' || before.type != tag.type;
}

}  // namespace

std::vector<Entity> entities_of(std::span<const std::string> tags) {
  std::vector<Entity> found;
  Tag before{'O', "_"};
  size_t begin = 0;
  for (size_t i = 0; i <= tags.size(); ++i) {
    const Tag tag = i < tags.size() ? read_tag(tags[i]) : Tag{'O', "_"};
    if (ends(before, tag)) found.push_back({std::string(before.type), begin, i});
    if (begins(before, tag)) begin = i;
    before = tag;
  }
  return found;
}

void EntityScores::add(std::span<const std::string> tags, std::span<const std::string> answers) {
  std::set<std::tuple<std::string, size_t, size_t>> expected;
  for (const Entity& e : entities_of(tags)) {
    expected.emplace(e.type, e.first, e.end);
    ++all.expected, ++by_type[e.type].expected;
  }
  for (const Entity& e : entities_of(answers)) {
    EntityCounts& of_type = by_type[e.type];
    ++all.predicted, ++of_type.predicted;
    const bool is_correct = expected.count({e.type, e.first, e.end}) > 0;
    all.correct += is_correct, of_type.correct += is_correct;
  }
}

}  // namespace command
