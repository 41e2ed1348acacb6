// Finds entities in a sequence of tags, such as B-PER I-PER O, and counts correct ones. Definitions: seqeval
// 1.2 in its default mode, which counts as conlleval does. L of BILOU counts as E, and U as S (tag_scheme.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "data/tag_scheme.h"

namespace command {

struct Entity {
  std::string type;   // "PER"; "_" for a tag without a type
  size_t first, end;  // words; half-open
};

// An entity begins at B or S. It also begins at I or E, if the previous word has O, E, S or another type. It
// ends after E or S, and before O, B, S or another type.
std::vector<Entity> entities_of(std::span<const std::string> tags);

struct EntityCounts {
  uint64_t correct = 0, expected = 0, predicted = 0;  // correct: the words and the type agree
  double precision() const {
    return predicted > 0 ? static_cast<double>(correct) / static_cast<double>(predicted) : 0;
  }
  double recall() const {
    return expected > 0 ? static_cast<double>(correct) / static_cast<double>(expected) : 0;
  }
  double f1() const {
    return expected + predicted > 0
               ? 2 * static_cast<double>(correct) / static_cast<double>(expected + predicted)
               : 0;
  }
};

struct EntityScores {
  EntityCounts all;
  std::map<std::string, EntityCounts> by_type;
  void add(std::span<const std::string> tags, std::span<const std::string> answers);  // the tags of one text
};

}  // namespace command
