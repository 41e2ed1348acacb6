// What downloads that failed leave in place of a file. src/files/file_kind.h knows the same of files that the library reads; the command includes
// nothing of it but its public header.
#pragma once
#include <string>
#include <string_view>

namespace command {

enum class Download { none, empty, pointer, web_page, error_message };

// Of the beginning of a file of that size.
Download kind_of_download(std::string_view beginning, size_t size);
// With what to do about it; empty for none.
std::string description_of(Download kind);
// The text of a model's file, such as a tokenizer. Throws where it is no regular file, or not what it is called.
std::string read_model_file(const std::string& path);

}  // namespace command
