// What a file is that was left where another one was expected: what downloads that failed leave behind.
#pragma once
#include <string>
#include <string_view>

#include "src/files/file.h"

namespace stw {

// Of the beginning of a file of `size` bytes: "a pointer of Git LFS: …", "an HTML page: …", "empty: …", with what to do; empty where it is none of these.
std::string kind_of_download(std::string_view beginning, uint64_t size);
// Likewise of a file. Also empty where it cannot be read.
std::string kind_of_download(const File& file);

}  // namespace stw
