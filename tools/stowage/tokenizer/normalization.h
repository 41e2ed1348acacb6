// Normalizes a text before it is split.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/charsmap.h"
#include "tokenizer/cuts.h"
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
  // The origins in `text` of the bytes that the operator returns. A step that changes several characters
  // together gives all their bytes one origin.
  std::vector<ByteOrigin> origins(std::string_view text) const;

 private:
  struct Step {
    NormalStep step;
    std::optional<Pattern> pattern;    // for replace
    std::optional<Charsmap> charsmap;  // for charsmap
  };
  static std::string carried_out(const Step& step, std::string text, size_t most);
  static std::vector<ByteOrigin> origins_after(const Step& step, std::string_view before,
                                               std::string_view after, std::span<const ByteOrigin> origins,
                                               size_t most);
  static void add_parts(const Step& step, std::string_view before, std::string_view after,
                        std::span<const ByteOrigin> origins, size_t most, size_t level,
                        std::vector<ByteOrigin>& out);
  static size_t of_first_after(const Step& step, const Normalized& before, size_t most);
  std::vector<Step> steps_;
};

}  // namespace command
