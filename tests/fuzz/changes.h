// Changes JSON that the library wrote. An input is an object whose members replace those of the original,
// recursively for objects. So the fuzzer reaches values far from any valid plan or profile without finding
// them by chance.
#pragma once
#include <string>

#include "planner/base/json.h"

namespace fuzz {

inline stw::Json changed(const stw::Json& written, const stw::Json& changes) {
  if (!written.is_object() || !changes.is_object()) return changes;
  stw::Json out = written;
  for (const auto& [name, value] : changes.members()) {
    const stw::Json* const old = written.find(name);
    if (value == stw::Json("(absent)")) out.erase(name);
    else out.set(name, old ? changed(*old, value) : value);
  }
  return out;
}

}  // namespace fuzz
