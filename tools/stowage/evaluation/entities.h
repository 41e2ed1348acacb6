// Entities in a sequence of tags, such as B-PER I-PER O, and how many of them were found. Definitions: seqeval 1.2, its default mode, which counts
// as conlleval does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace command {

struct Entity {
  std::string type;   // "PER"; "_" of a tag without one
  size_t first, end;  // words
};

// Whether all names are O, or B, I, E or S alone or before "-" and a type; and not all of them O.
bool are_entity_tags(std::span<const std::string> names);

// One begins with B or S, with I or E after O or another type, and after E or S; it ends before the next one, with E or S, or before O.
std::vector<Entity> entities_of(std::span<const std::string> tags);

struct EntityCounts {
  uint64_t right = 0, wanted = 0, given = 0;   // with the same words and type; in the text; in the answer
  double precision() const { return given > 0 ? static_cast<double>(right) / static_cast<double>(given) : 0; }
  double recall() const { return wanted > 0 ? static_cast<double>(right) / static_cast<double>(wanted) : 0; }
  double f1() const { return wanted + given > 0 ? 2 * static_cast<double>(right) / static_cast<double>(wanted + given) : 0; }
};

struct EntityScores {
  EntityCounts all;
  std::map<std::string, EntityCounts> by_type;
  void add(std::span<const std::string> tags, std::span<const std::string> answers);   // of one text
};

}  // namespace command
