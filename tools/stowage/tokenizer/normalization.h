// What becomes of a text before it is cut.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "pattern.h"

namespace command {

class Normalization {
 public:
  Normalization(const std::vector<NormalStep>& steps, const std::string& path);
  bool does_nothing() const { return steps_.empty(); }
  // `text` is UTF-8.
  std::string operator()(std::string_view text) const;

 private:
  struct Step {
    NormalStep step;
    std::optional<Pattern> pattern;   // replace
  };
  std::vector<Step> steps_;
};

}  // namespace command
