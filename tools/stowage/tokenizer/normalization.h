// Normalizes a text before it is split.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/charsmap.h"
#include "tokenizer/pattern.h"

namespace command {

struct Normalized {
  std::string text;
  size_t of_first;  // the number of bytes at the beginning that come from the first character of the original
                    // text
};

class Normalization {
 public:
  Normalization(const std::vector<NormalStep>& steps, const std::string& path);
  bool does_nothing() const { return steps_.empty(); }
  // `text` is UTF-8.
  Normalized operator()(std::string_view text) const;

 private:
  struct Step {
    NormalStep step;
    std::optional<Pattern> pattern;    // for replace
    std::optional<Charsmap> charsmap;  // for charsmap
  };
  static std::string carried_out(const Step& step, std::string text, size_t most);
  static size_t of_first_after(const Step& step, const Normalized& before, size_t most);
  std::vector<Step> steps_;
};

}  // namespace command
