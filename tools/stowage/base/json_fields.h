// Fields of JSON that the library or this command wrote: plans, headers of checkpoints, lines of metrics. And
// strings to write.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace command {

// The value of `key` in the object `scope`, or in the whole text if `scope` is empty. A member at
// the top is found first, and if there is none, the first one at any depth. Empty if there is none at all, if
// its value is of another kind, or if the text before it is not JSON.
std::optional<double> json_number(std::string_view text, std::string_view scope, std::string_view key);
std::optional<uint64_t> json_integer(std::string_view text, std::string_view scope, std::string_view key);
std::optional<bool> json_bool(std::string_view text, std::string_view scope, std::string_view key);
std::optional<std::string> json_string(std::string_view text, std::string_view scope, std::string_view key);
// The elements of an array as they are written.
std::optional<std::vector<std::string>> json_list(std::string_view text, std::string_view scope,
                                                  std::string_view key);

// The text as a JSON string with its quotes. Bytes that are not UTF-8 are replaced.
std::string json_quoted(std::string_view text);
// The same, but keeps bytes that are not UTF-8: a byte is written as \udc80 to \udcff, as Python's
// surrogateescape does.
std::string json_bytes(std::string_view text);

}  // namespace command
