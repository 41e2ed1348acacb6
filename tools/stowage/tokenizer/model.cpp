#include "tokenizer/model.h"

#include <variant>

#include "tokenizer/byte_pairs.h"
#include "tokenizer/unigram.h"
#include "tokenizer/word_pieces.h"

namespace command {
namespace {

// limits of the cache: number of pieces; bytes of a piece
constexpr size_t most_known = size_t{1} << 18, longest_known = 64;

}  // namespace

void Model::encode(std::string_view piece, std::vector<int32_t>& out) {
  if (piece.size() <= longest_known) {
    if (const auto found = known_.find(piece); found != known_.end()) {
      out.insert(out.end(), found->second.begin(), found->second.end());
      return;
    }
  }
  std::vector<int32_t> tokens;
  encode_new(piece, tokens);
  out.insert(out.end(), tokens.begin(), tokens.end());
  if (piece.size() <= longest_known && known_.size() < most_known) known_.emplace(piece, std::move(tokens));
}

std::unique_ptr<Model> make_model(const TokenizerDescription& d, const std::string& path) {
  struct Maker {
    std::unique_ptr<Model> operator()(const BytePairsDescription& model) const {
      return std::make_unique<BytePairs>(d, model, path);
    }
    std::unique_ptr<Model> operator()(const WordPiecesDescription& model) const {
      return std::make_unique<WordPieces>(d.vocabulary, model, path);
    }
    std::unique_ptr<Model> operator()(const UnigramDescription& model) const {
      return std::make_unique<Unigram>(d.vocabulary, model, path);
    }
    const TokenizerDescription& d;
    const std::string& path;
  };
  return std::visit(Maker{d, path}, d.model);
}

}  // namespace command
