// Byte-pair encoding. A piece starts as characters or bytes. The neighbouring pair that was learned first is
// merged, until no known pair is left. Source: Sennrich et al., arXiv:1508.07909.
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
  BytePairs(const TokenizerDescription& description, const BytePairsDescription& model,
            const std::string& path);

 private:
  struct Merge {
    int32_t rank, token;
  };

  int32_t token_of(std::string_view text) const;  // -1: none
  void begin(std::string_view piece, std::vector<int32_t>& tokens) const;
  void merge(std::vector<int32_t>& tokens) const;
  void encode_new(std::string_view piece, std::vector<int32_t>& out) const override;

  const bool of_bytes_, byte_fallback_, fuses_unknown_, ignores_merges_;
  int32_t unknown_ = -1;
  ByText<int32_t> vocabulary_;
  // token of each byte: with of_bytes the byte itself, else <0x00> to <0xFF>; -1: none
  std::array<int32_t, 256> byte_tokens_;
  std::unordered_map<uint64_t, Merge> merges_;  // key: the two tokens of a pair
};

// The byte that a character stands for in vocabularies that write bytes as characters (GPT-2's
// bytes_to_unicode). -1: none.
int byte_of(uint32_t character);
// The bytes of a token. Empty if a character of it stands for no byte.
std::optional<std::string> bytes_of(std::string_view token);

}  // namespace command
