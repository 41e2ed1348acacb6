// The CSV of offset allocation: a header with the columns id, lower, upper and size in any order, among others or not,
// and a row for each buffer.
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
};

// Throws a Failure that names the line, of the file called `name`, that is wrong.
LifetimeTable parse_lifetimes(std::string_view text, const std::string& name);

// The same rows with a column `offset`: the last, or where the table has one already.
std::string with_offsets(const LifetimeTable& table, const std::vector<uint64_t>& offsets);

}  // namespace command
