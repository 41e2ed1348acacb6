// Loads one of NVIDIA's libraries at run time. A loaded library stays.
#pragma once
#include <dlfcn.h>

#include <string>
#include <utility>
#include <vector>

#include "planner/base/result.h"

namespace stw::cuda {

struct LibrarySearch {
  std::string title;               // "cuBLASLt"
  std::vector<std::string> names;  // tried in order
  std::string advice;              // what to install
};

using LibrarySymbols = std::vector<std::pair<const char*, void**>>;  // names, and where their addresses go

// Errors: unsupported, with the advice. Any thread.
inline Status load_functions(const LibrarySearch& search, const LibrarySymbols& functions) {
  const auto missing = [&](const std::string& why) -> Status {
    return Error{Code::unsupported, search.title + ": " + why + "; " + search.advice};
  };
  void* library = nullptr;
  std::string why;
  for (const std::string& name : search.names) {
    library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    const char* const reason = dlerror();
    if (why.empty()) why = reason ? reason : name;
  }
  if (!library) return missing(why);
  for (const auto& [symbol, function] : functions) {
    *function = dlsym(library, symbol);
    if (!*function) return missing(std::string("the library has no ") + symbol);
  }
  return ok();
}

}  // namespace stw::cuda
