// Splits a text into pieces. No token crosses the end of a piece.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

namespace command {

// Where a byte comes from: a range of bytes of an original text. The range of an added byte is empty.
struct ByteOrigin {
  uint32_t begin, end;
};

class Cuts {
 public:
  Cuts(const std::vector<CutStep>& steps, const std::string& path);
  // Calls back for the pieces of `text` in order. `text` is UTF-8. `of_first`: the number of bytes at its
  // beginning that come from the first character of the whole text.
  void operator()(std::string_view text, size_t of_first,
                  const std::function<void(std::string_view)>& take) const {
    size_t left = longest_of(text);
    cut(0, {text, {}}, of_first, left, [&](const Piece& piece) { take(piece.text); });
  }
  // The same, with the origins of the bytes of each piece. `origins`: those of the bytes of `text`.
  using TakeOrigins = std::function<void(std::string_view piece, std::span<const ByteOrigin> origins)>;
  void with_origins(std::string_view text, std::span<const ByteOrigin> origins, size_t of_first,
                    const TakeOrigins& take) const {
    size_t left = longest_of(text);
    cut(0, {text, origins}, of_first, left, [&](const Piece& piece) { take(piece.text, piece.origins); });
  }

 private:
  struct Step {
    CutStep step;
    std::optional<Pattern> pattern;
  };
  struct Piece {
    std::string_view text;
    std::span<const ByteOrigin> origins;  // of its bytes; empty if nobody asks for them
  };
  using Take = std::function<void(const Piece&)>;
  // `left`: the bytes that all steps together may still process.
  void cut(size_t step, const Piece& whole, size_t of_first, size_t& left, const Take& take) const;
  std::vector<Step> steps_;
};

}  // namespace command
