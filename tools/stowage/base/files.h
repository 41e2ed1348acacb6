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

}  // namespace command
