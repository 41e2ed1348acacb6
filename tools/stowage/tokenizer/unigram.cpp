#include "tokenizer/unigram.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/failure.h"
#include "tokenizer/token_length.h"
#include "tokenizer/unicode.h"

namespace command {
namespace {

constexpr double unknown_penalty =
    10;  // SentencePiece's: an unknown character scores this much less than the worst token

std::vector<std::pair<std::string_view, int32_t>> entries_of(
    const std::vector<std::pair<std::string, int32_t>>& vocabulary, const std::string& path) {
  std::vector<std::pair<std::string_view, int32_t>> entries;
  for (const auto& [token, id] : vocabulary) {
    require_token_length(token, path);
    entries.emplace_back(token, id);
  }
  return entries;
}

}  // namespace

// Score of the best path to a position, and the last token of the path.
struct Unigram::Best {
  double score = 0;
  uint32_t length = 0;  // length of the token; 0: no path leads here
  int32_t token = -1;
};

Unigram::Unigram(const std::vector<std::pair<std::string, int32_t>>& vocabulary, const UnigramDescription& d,
                 const std::string& path)
    : path_(path),
      tokens_(entries_of(vocabulary, path)),
      scores_(d.scores),
      unknown_(d.unknown.value_or(-1)) {
  unknown_score_ =
      (scores_.empty() ? 0 : *std::min_element(scores_.begin(), scores_.end())) - unknown_penalty;
  byte_tokens_.fill(-1);
  for (const auto& [token, id] : vocabulary) {
    if (!d.byte_fallback || token.size() != 6 || !token.starts_with("<0x")) continue;
    for (size_t byte = 0; byte < byte_tokens_.size(); ++byte)
      if (token == fmt::format("<0x{:02X}>", byte)) byte_tokens_[byte] = id;
  }
}

std::vector<Unigram::Best> Unigram::best_paths(std::string_view piece) const {
  std::vector<Best> best(piece.size() + 1);
  for (size_t begin = 0; begin < piece.size();) {
    const double score_here = best[begin].score;
    const size_t character = first_character(piece.substr(begin)).bytes;
    bool has_token = false;  // whether this character alone is a token
    const auto offer = [&](size_t length, double score, int32_t token) {
      Best& end = best[begin + length];
      if (end.length == 0 || score > end.score) end = {score, static_cast<uint32_t>(length), token};
    };
    tokens_.for_prefixes(piece.substr(begin), [&](size_t length, int32_t token) {
      offer(length, scores_[static_cast<size_t>(token)] + score_here, token);
      has_token = has_token || length == character;
    });
    if (!has_token) {
      offer(character, unknown_score_ + score_here, unknown_);
      if (best[begin + character].token < 0)
        throw Failure(exit_failed,
                      fmt::format("{}: model.unk_id: is missing, but no token matches \"{}\" of the text",
                                  path_, piece.substr(begin, character)));
    }
    begin += character;
  }
  return best;
}

// The joined characters may be a token that the best path did not use.
void Unigram::add_unknown(std::string_view characters, std::vector<int32_t>& out) const {
  int32_t whole = -1;
  tokens_.for_prefixes(characters, [&](size_t length, int32_t token) {
    if (length == characters.size()) whole = token;
  });
  const auto has_token = [&](char byte) { return byte_tokens_[static_cast<unsigned char>(byte)] >= 0; };
  if (whole >= 0) out.push_back(whole);
  else if (!std::all_of(characters.begin(), characters.end(), has_token)) out.push_back(unknown_);
  else
    for (const char byte : characters) out.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
}

void Unigram::encode_new(std::string_view piece, std::vector<int32_t>& out) const {
  const std::vector<Best> best = best_paths(piece);
  struct Taken {
    size_t begin, end;
    int32_t token;
  };
  std::vector<Taken> path;  // in reverse order
  for (size_t end = piece.size(), begin = 0; end > 0; end = begin) {
    begin = end - best[end].length;
    if (!path.empty() && best[end].token == unknown_ && path.back().token == unknown_)
      path.back().begin = begin;
    else path.push_back({begin, end, best[end].token});
  }
  std::reverse(path.begin(), path.end());
  for (const auto& [begin, end, token] : path)
    if (token == unknown_) add_unknown(piece.substr(begin, end - begin), out);
    else out.push_back(token);
}

}  // namespace command
