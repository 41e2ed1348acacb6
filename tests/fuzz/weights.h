// Weight files with a header from the input, and zeros as data.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "planner/base/json.h"

namespace fuzz {

// A file for this header. It has as much data as the header declares, up to a MiB.
inline std::string weights_of(const std::string& header) {
  constexpr uint64_t most_bytes = 1 << 20;
  uint64_t end = 0;
  if (const auto json = stw::parse_json(header))
    for (const auto& [name, tensor] : json->members())
      if (const auto offsets = stw::get_array(tensor, "data_offsets");
          offsets && (*offsets)->elements().size() == 2)
        if (const int64_t* const last = (*offsets)->elements()[1].as_int(); last && *last > 0)
          end = std::max(end, static_cast<uint64_t>(*last));
  std::string file(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  return (file + header).append(std::min(end, most_bytes), '\0');
}

}  // namespace fuzz
