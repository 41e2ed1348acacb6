// Tags that mark entities: a kind, alone or with "-" and a type, such as B-PER.
//   IOB1, IOB2  B begins, I is inside, O is outside; in IOB1 only an entity right after one of its type has B
//   BIOES       also E, the last word, and S, a single word
//   BILOU       L and U instead of E and S
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace command {

struct Tag {
  char kind;              // B, I, O, E or S; L counts as E, U as S, and 0 as O
  std::string_view type;  // "_" for a tag without a type
};

Tag read_tag(std::string_view tag);

// Whether the tag may belong to one of the schemes.
bool is_entity_tag(std::string_view tag);

// Whether all names are tags of one scheme, and at least one is not O.
bool are_entity_tags(std::span<const std::string> names);

// The name of a scheme, from the tags of texts: "IOB2", … Empty if they are not tags of entities.
std::string scheme_of(std::span<const std::vector<std::string>> texts);

}  // namespace command
