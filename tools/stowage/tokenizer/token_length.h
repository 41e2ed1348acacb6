// The limit on the length of a token for models that match tokens at every position of a text. It bounds the
// work for a byte of text.
#pragma once
#include <string>
#include <string_view>

namespace command {

constexpr size_t longest_token = 4096;  // bytes

// Throws a Failure that names `path`.
void require_token_length(std::string_view token, const std::string& path);

}  // namespace command
