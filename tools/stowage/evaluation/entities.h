// Finds entities in a sequence of tags, such as B-PER I-PER O, and counts correct ones. Definitions: seqeval
// 1.2 in its default mode, which counts as conlleval does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace command {

struct Entity {
  std::string type;   // "PER"; "_" for a tag without a type
  size_t first, end;  // words; half-open
};

// Whether each name is O, or one of B, I, E and S, alone or with "-" and a type; and at least one is not O.
bool are_entity_tags(std::span<const std::string> names);

// An entity begins at B or S. It also begins at I or E, if the previous word has O, E, S or another type. It
// ends after E or S, and before O, B, S or another type.
std::vector<Entity> entities_of(std::span<const std::string> tags);

struct EntityCounts {
  uint64_t right = 0, wanted = 0, given = 0;  // same words and type; in the text; in the answer
  double precision() const { return given > 0 ? static_cast<double>(right) / static_cast<double>(given) : 0; }
  double recall() const { return wanted > 0 ? static_cast<double>(right) / static_cast<double>(wanted) : 0; }
  double f1() const {
    return wanted + given > 0 ? 2 * static_cast<double>(right) / static_cast<double>(wanted + given) : 0;
  }
};

struct EntityScores {
  EntityCounts all;
  std::map<std::string, EntityCounts> by_type;
  void add(std::span<const std::string> tags, std::span<const std::string> answers);  // the tags of one text
};

}  // namespace command
