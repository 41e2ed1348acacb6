// The CSV of offset allocation, as MiniMalloc has it: a header with the columns id, lower, upper and size in any order, among others or not,
// and a row for each buffer. The columns alignment, gaps and offset constrain its place. Older names are read too: buffer and buffer_id for id,
// begin and start for lower, and end for upper, which names the last moment of a life, so that upper is one more (of gaps likewise).
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stowage.h"

namespace command {

struct LifetimeTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // of as many fields
  std::vector<stw_buffer_lifetime> lifetimes;  // of the rows
  std::vector<stw_buffer_constraint> constraints;   // of the rows, whose gaps lie below
  std::vector<std::vector<stw_buffer_gap>> gaps;
  size_t id = 0;                                // the column that has it
  std::vector<std::string> other_columns;       // that are carried along, and whose names say nothing known
  size_t given_offsets = 0;
};

// Throws a Failure that names the line, of the file called `name`, that is wrong.
LifetimeTable parse_lifetimes(std::string_view text, const std::string& name, bool ignores_offsets = false);

// The same rows with a column `offset`: the last, or where the table has one already.
std::string with_offsets(const LifetimeTable& table, const std::vector<uint64_t>& offsets);

}  // namespace command
