// Small text files: read whole, replaced atomically. Every failure names the file.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace command {

// Also of a pipe or a device, which someone who is asked for text may give.
std::string read_text(const std::string& path);
// Of a model's or a run's file: nothing where there is none. Throws, and does not wait, where it is a pipe or a device.
std::optional<std::string> read_text_if_there(const std::string& path);
// The first so many bytes of a regular file; nothing of anything else.
std::string beginning_of(const std::string& path, size_t bytes);
// 64 bits of FNV-1a, as 16 hexadecimal digits: any flipped bit gives another one.
std::string checksum_of(std::string_view text);
// False where a regular file begins with what is neither white space nor a brace: that is found without reading all of it.
bool may_be_json(const std::string& path);
// A kill at any moment leaves the old or the new file, which is on the disk when this is done.
void write_text(const std::string& path, std::string_view text);

// Makes a file and opens it, as mkstemp(): the name's last XXXXXX become what no other file has; -1, and errno, where it cannot.
int made_file(std::string& name);

// Whether its name ends so, in letters of either case; `suffix` in small ones.
bool is_named(const std::string& path, std::string_view suffix);
bool is_folder(const std::string& path);
bool is_there(const std::string& path);
// Whether both are there and one and the same, whatever their names.
bool is_same(const std::string& one, const std::string& other);
// False of pipes and devices alone: what is not there, or a folder, reading tells.
bool may_be_read_again(const std::string& path);
uint64_t file_bytes(const std::string& path);

// Fields of JSON that the library or this command wrote: the first number or string that follows "key": after the
// first mention of "scope": (an empty scope: from the beginning). No parser: unknown text gives nothing or nonsense,
// so it serves only to show and to suggest defaults.
std::optional<double> json_number(std::string_view text, std::string_view scope, std::string_view key);
std::optional<uint64_t> json_whole(std::string_view text, std::string_view scope, std::string_view key);
std::optional<bool> json_bool(std::string_view text, std::string_view scope, std::string_view key);
std::optional<std::string> json_string(std::string_view text, std::string_view scope, std::string_view key);
// An array's elements, as they are written but for white space.
std::optional<std::vector<std::string>> json_list(std::string_view text, std::string_view scope, std::string_view key);
// The text as a JSON string, with its quotes. What is no UTF-8 is replaced.
std::string json_quoted(std::string_view text);
// Likewise, and what is no UTF-8 is kept: a byte as \udc80 to \udcff, as Python's surrogateescape has it.
std::string json_bytes(std::string_view text);

}  // namespace command
