#include "tokenizer/word_pieces.h"

#include <fmt/format.h>

#include "base/failure.h"
#include "planner/base/utf8.h"
#include "tokenizer/token_length.h"

namespace command {
namespace {

using Vocabulary = std::vector<std::pair<std::string, int32_t>>;

// The tokens that begin with the prefix. The prefix itself is removed.
std::vector<std::pair<std::string_view, int32_t>> with_prefix(const Vocabulary& vocabulary,
                                                              std::string_view prefix,
                                                              const std::string& path) {
  std::vector<std::pair<std::string_view, int32_t>> entries;
  for (const auto& [token, id] : vocabulary) {
    require_token_length(token, path);
    if (token.starts_with(prefix)) entries.emplace_back(std::string_view(token).substr(prefix.size()), id);
  }
  return entries;
}

int32_t id_in(const Vocabulary& vocabulary, const std::string& token, const std::string& path) {
  int32_t id = -1;
  for (const auto& [text, number] : vocabulary)
    if (text == token) id = number;
  if (id < 0)
    throw Failure(exit_failed,
                  fmt::format("{}: model.unk_token: \"{}\" is not in the vocabulary", path, token));
  return id;
}

size_t characters_of(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += !stw::continues_utf8(c);
  return count;
}

}  // namespace

WordPieces::WordPieces(const Vocabulary& vocabulary, const WordPiecesDescription& d, const std::string& path)
    : beginnings_(with_prefix(vocabulary, "", path)),
      continuations_(with_prefix(vocabulary, d.continuing_prefix, path)),
      unknown_(id_in(vocabulary, d.unknown, path)),
      most_characters_(d.most_characters) {}

void WordPieces::encode_new(std::string_view piece, std::vector<int32_t>& out) const {
  bool is_known = characters_of(piece) <= most_characters_;
  for (size_t at = 0; is_known && at < piece.size();) {
    size_t longest = 0;
    int32_t token = -1;
    (at == 0 ? beginnings_ : continuations_)
        .for_prefixes(piece.substr(at), [&](size_t length, int32_t value) {
          longest = length;
          token = value;
        });
    is_known = longest > 0;
    if (is_known) out.push_back(token);
    at += longest;
  }
  if (!is_known) out.assign(1, unknown_);
}

}  // namespace command
