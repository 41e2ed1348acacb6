// Byte-pair encoding: a piece begins as characters, or bytes, of which the pair that was learned first becomes one token, until no
// neighbours are a known pair. Source: Sennrich et al., arXiv:1508.07909.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/description.h"
#include "tokenizer/model.h"

namespace command {

class BytePairs : public Model {
 public:
  BytePairs(const TokenizerDescription& description, const BytePairsDescription& model, const std::string& path);

 private:
  struct Merge { int32_t rank, token; };

  int32_t token_of(std::string_view text) const;   // -1: none
  void begin(std::string_view piece, std::vector<int32_t>& tokens) const;
  void merge(std::vector<int32_t>& tokens) const;
  void encode_new(std::string_view piece, std::vector<int32_t>& out) const override;

  const bool of_bytes_, byte_fallback_, fuses_unknown_, ignores_merges_;
  int32_t unknown_ = -1;
  ByText<int32_t> vocabulary_;
  std::array<int32_t, 256> byte_tokens_;   // of_bytes: of a byte; else of <0x00> to <0xFF>; -1: none
  std::unordered_map<uint64_t, Merge> merges_;   // by the pair
};

// What a character stands for where a vocabulary writes bytes as characters (GPT-2's bytes_to_unicode); -1: for none.
int byte_of(uint32_t character);
// The bytes that a token stands for; none where it has a character that stands for none.
std::optional<std::string> bytes_of(std::string_view token);

}  // namespace command
