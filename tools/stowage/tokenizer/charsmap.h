// SentencePiece's compiled normalization rules ("precompiled_charsmap"). A rule replaces a character or a
// short grapheme cluster with a text. A double array maps a rule's key to the offset of its text; a zero byte
// ends a text. Source: https://github.com/google/sentencepiece, src/normalizer.h.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace command {

class Charsmap {
 public:
  // `place` begins the message of a Failure. Damage may show only when a text needs the damaged part.
  Charsmap(std::string_view bytes, std::string place);
  // `text` is UTF-8. Throws TooMuchText if the result exceeds `most` bytes.
  std::string operator()(std::string_view text, size_t most) const;

 private:
  [[noreturn]] void fail() const;
  uint32_t unit(uint32_t at) const;
  // The replacement by the shortest key that `text` begins with.
  std::optional<std::string_view> find(std::string_view text) const;
  void add_cluster(std::string_view cluster, std::string& out) const;

  std::string place_;
  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace command
