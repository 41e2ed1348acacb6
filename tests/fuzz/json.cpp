// Fuzzes both JSON parsers, the library's and the command's. The library's reads what it wrote with the same
// result. The command's accepts every text that the library's accepts, up to its limit of nesting, and reads
// the same value.
#include "planner/base/json.h"

#include "base/failure.h"
#include "base/json_value.h"
#include "input.h"

namespace {

int depth_of(const stw::Json& json) {
  int depth = 0;
  for (const stw::Json& element : json.elements()) depth = std::max(depth, depth_of(element) + 1);
  for (const auto& [key, value] : json.members()) depth = std::max(depth, depth_of(value) + 1);
  return depth;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = stw::parse_json(text);
  if (json) {
    for (const int indent : {0, 2}) {
      const auto again = stw::parse_json(stw::to_string(*json, indent));
      fuzz::require(again && *again == *json, "the written text reads as the same value");
    }
    const std::string canonical = stw::to_string(stw::canonical(*json), 0);
    const auto same = stw::parse_json(canonical);
    fuzz::require(same && stw::to_string(stw::canonical(*same), 0) == canonical,
                  "a canonical text stays the same");
  }
  try {
    const stw::Json value = command::read_json(text, "text");
    const auto same = stw::parse_json(stw::to_string(value, 0));
    fuzz::require(!json || (same && *same == *json), "the command reads the library's value");
  } catch (const command::Failure&) {
    fuzz::require(!json || depth_of(*json) > 60, "what the library takes the command takes");
  }
  return 0;
}
