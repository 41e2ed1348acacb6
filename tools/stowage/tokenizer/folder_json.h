// A JSON file in the folder of a tokenizer's file, such as tokenizer_config.json.
#pragma once
#include <string>

#include "base/files.h"
#include "base/json_value.h"

namespace command {

// The folder of a file, with its slash; empty for a name without one.
inline std::string folder_path_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

// The content of the file `name` in the folder of the file `path`. Null if it does not exist. Throws a
// Failure if it is not JSON.
class FolderJson {
 public:
  FolderJson(const std::string& path, const char* name) : path_(folder_path_of(path) + name) {
    if (const auto text = read_text_if_there(path_)) value_ = read_json(*text, path_);
  }
  JsonView view() const { return JsonView(value_, path_ + ": "); }

 private:
  const std::string path_;
  Json value_;
};

}  // namespace command
