// The CSV of offset allocation, in the format of MiniMalloc. The header has the columns id, lower, upper and
// size in any order, and may have others. Each buffer has a row. The columns alignment, gaps and offset
// constrain its place. Older names are read, too: buffer and buffer_id for id, begin and start for lower, and
// end for upper. "end" names the last moment of a life, so that upper is one more. The same holds for gaps.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stowage.h"

namespace command {

struct LifetimeTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // each with as many fields as the header
  std::vector<stw_buffer_lifetime> lifetimes;  // of the rows
  std::vector<stw_buffer_constraint> constraints;   // of the rows; their gaps are in `gaps`
  std::vector<std::vector<stw_buffer_gap>> gaps;
  size_t id = 0;                                // the index of the id's column
  std::vector<std::string> other_columns;       // columns that are copied and have no known name
  size_t given_offsets = 0;
};

// Throws a Failure that names the wrong line of the file `name`.
LifetimeTable parse_lifetimes(std::string_view text, const std::string& name, bool ignores_offsets = false);

// The same rows with a column `offset`, which is the last one unless the table already has it.
std::string with_offsets(const LifetimeTable& table, const std::vector<uint64_t>& offsets);

}  // namespace command
