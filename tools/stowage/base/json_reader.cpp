#include "base/json_reader.h"

#include <fmt/format.h>

#include "base/failure.h"

namespace command {

void JsonReader::fail(const std::string& what, size_t byte) const {
  const std::string line =
      names_lines_ ? fmt::format(" of the file, in line {}", reader_.place(byte).line) : "";
  throw Failure(exit_failed, fmt::format("{}: {} at byte {}{}", damaged_, what, offset_ + byte, line));
}

}  // namespace command
