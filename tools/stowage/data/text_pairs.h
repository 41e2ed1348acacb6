// Finds the two texts of a pair by the names of their columns, or of their members in JSON.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "data/data_source.h"
#include "data/labelled.h"

namespace command {

// The names of two columns that hold the two texts of a pair, such as "premise" and "hypothesis".
struct TextPair {
  std::string first, second;
};
// The pairs whose names are known, in any case.
std::vector<TextPair> pairs_among(std::span<const std::string> names);

// Fills in the names of the texts that no flag names: both texts of a pair whose names are known, or the
// partner of --text-field. Leaves files without a column or member of such a name as they are. Throws a
// Failure if --pair-field names a column that is not there, or if there are several pairs. Warns of a second
// text that is left out.
void find_pair(const DataSource& data, LabelFields& fields);
// Whether the first objects of JSON have the label.
bool has_label_member(const DataSource& data, const LabelFields& fields);

}  // namespace command
