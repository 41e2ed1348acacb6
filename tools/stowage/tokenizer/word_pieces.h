// WordPiece: a word is the longest token that it begins with, then the longest that the rest begins with, and so on; a word that leaves a rest
// without a token is unknown. Source: Wu et al., arXiv:1609.08144, §4.1; the search is BERT's.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "description.h"
#include "model.h"
#include "trie.h"

namespace command {

class WordPieces : public Model {
 public:
  WordPieces(const std::vector<std::pair<std::string, int32_t>>& vocabulary, const WordPiecesDescription& description, const std::string& path);

 private:
  void encode_new(std::string_view piece, std::vector<int32_t>& out) const override;

  const Trie beginnings_, continuations_;   // these without their prefix
  const int32_t unknown_;
  const uint64_t most_characters_;
};

}  // namespace command
