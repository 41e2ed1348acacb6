// Splits a text into pieces. No token crosses the end of a piece.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

namespace command {

class Cuts {
 public:
  Cuts(const std::vector<CutStep>& steps, const std::string& path);
  // Calls back for the pieces of `text` in order. `text` is UTF-8. `of_first`: the number of bytes at its
  // beginning that come from the first character of the whole text.
  void operator()(std::string_view text, size_t of_first,
                  const std::function<void(std::string_view)>& take) const {
    size_t left = longest_of(text);
    cut(0, text, of_first, left, take);
  }

 private:
  struct Step {
    CutStep step;
    std::optional<Pattern> pattern;
  };
  // `left`: the bytes that all steps together may still process.
  void cut(size_t step, std::string_view text, size_t of_first, size_t& left,
           const std::function<void(std::string_view)>& take) const;
  std::vector<Step> steps_;
};

}  // namespace command
