// The CSV format of MiniMalloc for offset allocation. The header names the columns id, lower, upper and size
// in any order, and may name others. Each buffer has a row. The columns alignment, gaps and offset constrain
// its place. Older column names are read, too: buffer and buffer_id for id, begin and start for lower, and
// end for upper. A column "end" has the last moment of a life, so upper is one more. The gaps of such a file
// also have inclusive ends.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stowage.h"

namespace command {

struct LifetimeTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;      // each has as many fields as the header
  std::vector<stw_buffer_lifetime> lifetimes;      // one for each row
  std::vector<stw_buffer_constraint> constraints;  // one for each row; their gaps are in `gaps`
  std::vector<std::vector<stw_buffer_gap>> gaps;
  size_t id = 0;                           // index of the id column
  std::vector<std::string> other_columns;  // columns without a known meaning, which are copied
  size_t given_offsets = 0;
};

// Throws a Failure that names the wrong line of the file `name`.
LifetimeTable parse_lifetimes(std::string_view text, const std::string& name, bool ignores_offsets = false);

// The same rows with a column `offset`, which is the last one unless the table already has it.
std::string with_offsets(const LifetimeTable& table, const std::vector<uint64_t>& offsets);

}  // namespace command
