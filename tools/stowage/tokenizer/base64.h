// Decodes base64 (RFC 4648), in which JSON stores bytes.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace command {

// Empty if the text is not base64 with padding.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace command
