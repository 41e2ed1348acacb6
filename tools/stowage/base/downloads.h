// Recognises the contents that a failed download leaves in place of a file. src/files/file_kind.h does the
// same for files that the library reads. The command cannot use it, because it includes nothing of
// src/.
#pragma once
#include <string>
#include <string_view>

namespace command {

enum class Download { none, empty, pointer, web_page, error_message };

// The kind of a file of `size` bytes, by its beginning.
Download kind_of_download(std::string_view beginning, size_t size);
// Describes the content and says what to do about it. Empty for `none`.
std::string description_of(Download kind);
// Reads the text of a model's file, such as a tokenizer. Throws a Failure if it is not a regular file, or if
// it is the remains of a failed download.
std::string read_model_file(const std::string& path);

}  // namespace command
