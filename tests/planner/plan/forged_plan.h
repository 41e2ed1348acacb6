// Plans that somebody might write by hand: with changed values, and the fingerprint that belongs to them.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

#include "planner/base/json.h"
#include "src/base/hash.h"

namespace stw::testing_tools {

// `plan` with one value replaced: that of keys[0], or that of keys[1] inside of it, and so on.
inline Json with_value(const Json& plan, const std::vector<std::string>& keys, const Json& value) {
  const auto replaced = [&](const auto& self, const Json& object, size_t depth) -> Json {
    if (depth == keys.size()) return value;
    Json out = Json::object();
    for (const auto& [name, old] : object.members())
      out.set(name, name == keys[depth] ? self(self, old, depth + 1) : old);
    return out;
  };
  return replaced(replaced, plan, 0);
}

// The text of a plan, with the fingerprint of all its other fields.
inline std::string with_fingerprint(const Json& plan) {
  Json body = Json::object();
  for (const auto& [name, value] : plan.members())
    if (name != "fingerprint") body.set(name, value);
  const std::string canonical = to_string(body, 0);
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(hash64(canonical.data(), canonical.size())));
  return to_string(body.set("fingerprint", digits), 1);
}

}  // namespace stw::testing_tools
