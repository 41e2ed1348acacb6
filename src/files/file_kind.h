// Recognises files that a failed download left in place of the expected ones.
#pragma once
#include <string>
#include <string_view>

#include "src/files/file.h"

namespace stw {

// Describes a failed download from the first bytes of a file of `size` bytes: "a pointer of Git LFS …", "a
// web page …", "empty: …", with what to do. Empty for any other file.
std::string kind_of_download(std::string_view beginning, uint64_t size);
// The same for a file. Also empty where it cannot be read.
std::string kind_of_download(const File& file);

}  // namespace stw
