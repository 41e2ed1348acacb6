// SentencePiece's rules of normalization, compiled: which characters, or short clusters of them, become which text. A double array holds them,
// each with the place of its text among all texts, which end with a zero byte. Source: https://github.com/google/sentencepiece, normalizer.h.
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
  // `place` begins what a Failure says of bytes that are damaged, now or when a text needs them.
  Charsmap(std::string_view bytes, std::string place);
  // `text` is UTF-8. Throws TooMuchText where more than `most` bytes come of it.
  std::string operator()(std::string_view text, size_t most) const;

 private:
  [[noreturn]] void fail() const;
  uint32_t unit(uint32_t at) const;
  // Of the shortest rule that `text` begins with what comes of it; nothing: there is none.
  std::optional<std::string_view> find(std::string_view text) const;
  void add_cluster(std::string_view cluster, std::string& out) const;

  std::string place_;
  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace command
