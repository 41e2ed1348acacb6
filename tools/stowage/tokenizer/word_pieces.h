// WordPiece with BERT's greedy search: the longest token that a word begins with comes first, then the
// longest continuation that the rest begins with. A word is unknown if at some point no token matches.
// Source: Wu et al., arXiv:1609.08144.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/description.h"
#include "tokenizer/model.h"
#include "tokenizer/trie.h"

namespace command {

class WordPieces : public Model {
 public:
  WordPieces(const std::vector<std::pair<std::string, int32_t>>& vocabulary,
             const WordPiecesDescription& description, const std::string& path);

 private:
  void encode_new(std::string_view piece, std::vector<int32_t>& out) const override;

  const Trie beginnings_, continuations_;  // continuations without their prefix
  const int32_t unknown_;
  const uint64_t most_characters_;
};

}  // namespace command
