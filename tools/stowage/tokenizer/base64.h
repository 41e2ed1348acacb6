// Bytes that JSON holds as text (RFC 4648).
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace command {

// Empty if the text is not base64 with padding.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace command
