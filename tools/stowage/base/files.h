// Small text files, which are read whole and replaced atomically. Every failure names the file.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace command {

// Reads a file that the user named. It may be a pipe or a device.
std::string read_text(const std::string& path);
// Reads a file of a model or of a run. Empty if there is no such file. Throws a Failure for a pipe or a
// device, and never waits for one.
std::optional<std::string> read_text_if_there(const std::string& path);
// The first `bytes` bytes of a regular file. Empty for anything else.
std::string beginning_of(const std::string& path, size_t bytes);
// 64-bit FNV-1a. A single flipped bit always changes it.
uint64_t hash_of(std::string_view text);
std::string checksum_of(std::string_view text);  // the hash as 16 hexadecimal digits
// False if a regular file begins with something other than white space or a brace. Reads only the beginning
// of the file.
bool may_be_json(const std::string& path);
// Replaces a file. If the process is killed at any moment, either the old file or the new one is there. The
// new file is on the disk when this returns.
void write_text(const std::string& path, std::string_view text);

// Creates and opens a file as mkstemp() does: replaces the last XXXXXX of `name` so that the name is unused.
// Returns the descriptor, or -1 with errno set.
int made_file(std::string& name);

// Whether the name ends with `suffix`, in either case. `suffix` is in lower case.
bool is_named(const std::string& path, std::string_view suffix);
bool is_folder(const std::string& path);
bool is_there(const std::string& path);
// Whether both paths exist and lead to the same file.
bool is_same(const std::string& one, const std::string& other);
// False only for pipes and devices. Missing files and folders are reported when they are read.
bool may_be_read_again(const std::string& path);
uint64_t file_bytes(const std::string& path);

// These functions read fields of JSON that the library or this command wrote. They search for the quoted
// `key` after the first mention of the quoted `scope` (if `scope` is empty: from the beginning), and read the
// value that follows the key. They are not parsers: on unknown text the result is empty or wrong. Use them
// only to show values and to suggest defaults.
std::optional<double> json_number(std::string_view text, std::string_view scope, std::string_view key);
std::optional<uint64_t> json_integer(std::string_view text, std::string_view scope, std::string_view key);
std::optional<bool> json_bool(std::string_view text, std::string_view scope, std::string_view key);
std::optional<std::string> json_string(std::string_view text, std::string_view scope, std::string_view key);
// The elements of an array as they are written, without white space.
std::optional<std::vector<std::string>> json_list(std::string_view text, std::string_view scope,
                                                  std::string_view key);
// The text as a JSON string with its quotes. Bytes that are not UTF-8 are replaced.
std::string json_quoted(std::string_view text);
// The same, but keeps bytes that are not UTF-8: a byte is written as \udc80 to \udcff, as Python's
// surrogateescape does.
std::string json_bytes(std::string_view text);

}  // namespace command
