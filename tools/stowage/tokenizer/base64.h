// Bytes that JSON holds as text (RFC 4648).
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace command {

// Nothing where the text is no base64 with its padding.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace command
