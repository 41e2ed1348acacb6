// How a text is cut into the pieces that tokens do not cross.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pattern.h"

namespace command {

class Cuts {
 public:
  Cuts(const std::vector<CutStep>& steps, const std::string& path);
  // Gives the pieces of `text`, which is UTF-8, in order. `is_first`: it begins the whole text.
  void operator()(std::string_view text, bool is_first, const std::function<void(std::string_view)>& take) const { cut(0, text, is_first, take); }

 private:
  struct Step {
    CutStep step;
    std::optional<Pattern> pattern;
  };
  void cut(size_t step, std::string_view text, bool is_first, const std::function<void(std::string_view)>& take) const;
  std::vector<Step> steps_;
};

}  // namespace command
