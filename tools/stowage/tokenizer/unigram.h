// Unigram language model: the Viterbi algorithm finds the tokens of a piece with the largest sum of scores. A
// score is a logarithm of a probability. Neighbouring characters without a token become one unknown token, or
// their bytes. Source: Kudo, arXiv:1804.10959.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/description.h"
#include "tokenizer/model.h"
#include "tokenizer/trie.h"

namespace command {

class Unigram : public Model {
 public:
  Unigram(const std::vector<std::pair<std::string, int32_t>>& vocabulary,
          const UnigramDescription& description, const std::string& path);

 private:
  struct Best;
  void encode_new(std::string_view piece, std::vector<int32_t>& out) const override;
  std::vector<Best> best_paths(std::string_view piece) const;
  void add_unknown(std::string_view characters, std::vector<int32_t>& out) const;

  const std::string path_;
  const Trie tokens_;
  const std::vector<double> scores_;  // by token
  const int32_t unknown_;             // -1: none
  double unknown_score_;
  std::array<int32_t, 256> byte_tokens_;  // <0x00> to <0xFF> for byte_fallback; -1: none
};

}  // namespace command
