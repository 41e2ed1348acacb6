#include "data/tag_scheme.h"

#include <algorithm>
#include <set>

namespace command {
namespace {

bool is_outside(std::string_view tag) { return tag == "O" || tag == "0"; }

constexpr std::string_view kinds = "BIESLU";

bool holds(std::string_view letters, char letter) { return letters.find(letter) != std::string_view::npos; }

}  // namespace

Tag read_tag(std::string_view tag) {
  if (tag.empty() || is_outside(tag)) return {'O', "_"};
  std::string_view type = tag.substr(1);
  if (const size_t dash = type.find('-'); dash != type.npos) type.remove_prefix(dash + 1);
  const char kind = tag[0] == 'L' ? 'E' : tag[0] == 'U' ? 'S' : tag[0];
  return {kind, type.empty() ? "_" : type};
}

bool is_entity_tag(std::string_view tag) {
  if (is_outside(tag)) return true;
  if (tag.empty() || !holds(kinds, tag[0])) return false;
  return tag.size() == 1 || (tag[1] == '-' && tag.size() > 2);
}

bool are_entity_tags(std::span<const std::string> names) {
  const auto is_one = [](const std::string& name) { return is_entity_tag(name); };
  const auto has_kind = [&](std::string_view letters) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return !name.empty() && holds(letters, name[0]); });
  };
  return std::all_of(names.begin(), names.end(), is_one) && has_kind(kinds) &&
         !(has_kind("ES") && has_kind("LU"));
}

std::string scheme_of(std::span<const std::vector<std::string>> texts) {
  std::set<std::string> all;
  for (const std::vector<std::string>& tags : texts) all.insert(tags.begin(), tags.end());
  if (!are_entity_tags(std::vector<std::string>(all.begin(), all.end()))) return "";
  for (const std::string& tag : all) {
    if (tag[0] == 'E' || tag[0] == 'S') return "BIOES";
    if (tag[0] == 'L' || tag[0] == 'U') return "BILOU";
  }
  bool begins_by_inside = false, is_iob1 = true;  // is_iob1: B only after a word of the same type
  for (const std::vector<std::string>& tags : texts) {
    Tag before{'O', "_"};
    for (const std::string& text : tags) {
      const Tag tag = read_tag(text);
      const bool follows = before.kind != 'O' && before.type == tag.type;
      begins_by_inside = begins_by_inside || (tag.kind == 'I' && !follows);
      is_iob1 = is_iob1 && (tag.kind != 'B' || follows);
      before = tag;
    }
  }
  return !begins_by_inside ? "IOB2" : is_iob1 ? "IOB1" : "IOB, in which entities begin with B or with I";
}

}  // namespace command
