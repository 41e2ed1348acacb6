// What is written by the library and then changed: an input is an object of JSON whose members take the place of those in what was written, objects
// member by member, so that what is far from a plan or a profile need not be found by chance.
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
