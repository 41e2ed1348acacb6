#include "tokenizer/byte_pairs.h"

#include <fmt/format.h>

#include <queue>

#include "base/failure.h"
#include "tokenizer/unicode.h"

namespace command {
namespace {

uint64_t pair_of(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

bool is_shown(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

// Bytes that are not printable map to U+0100 and up, in order.
std::array<int, 512> make_bytes() {
  std::array<int, 512> bytes;
  bytes.fill(-1);
  int hidden = 256;
  for (int byte = 0; byte < 256; ++byte)
    bytes[static_cast<size_t>(is_shown(static_cast<uint32_t>(byte)) ? byte : hidden++)] = byte;
  return bytes;
}

}  // namespace

int byte_of(uint32_t character) {
  static const std::array<int, 512> bytes = make_bytes();
  return character < bytes.size() ? bytes[character] : -1;
}

std::optional<std::string> bytes_of(std::string_view token) {
  std::string out;
  while (!token.empty()) {
    const Character c = first_character(token);
    const int byte = byte_of(c.code);
    if (byte < 0) return std::nullopt;
    out += static_cast<char>(byte);
    token.remove_prefix(c.bytes);
  }
  return out;
}

BytePairs::BytePairs(const TokenizerDescription& d, const BytePairsDescription& model,
                     const std::string& path)
    : of_bytes_(d.of_bytes()),
      byte_fallback_(model.byte_fallback),
      fuses_unknown_(model.fuses_unknown),
      ignores_merges_(model.ignores_merges) {
  const auto as_stored = [&](const std::string& token) { return of_bytes_ ? bytes_of(token) : token; };
  for (const auto& [token, id] : d.vocabulary)
    // other tokens match no text
    if (auto stored = as_stored(token)) vocabulary_.emplace(std::move(*stored), id);
  for (size_t byte = 0; byte < byte_tokens_.size(); ++byte)
    byte_tokens_[byte] =
        token_of(of_bytes_ ? std::string(1, static_cast<char>(byte)) : fmt::format("<0x{:02X}>", byte));
  for (const auto& [token, id] : d.vocabulary)
    if (token == model.unknown) unknown_ = id;
  if (model.unknown && unknown_ < 0)
    throw Failure(exit_failed,
                  fmt::format("{}: model.unk_token: \"{}\" is not in the vocabulary", path, *model.unknown));
  merges_.reserve(model.merges.size());
  for (size_t rank = 0; rank < model.merges.size(); ++rank) {
    const auto left = as_stored(model.merges[rank].first), right = as_stored(model.merges[rank].second);
    const int32_t a = left ? token_of(*left) : -1, b = right ? token_of(*right) : -1,
                  both = a < 0 || b < 0 ? -1 : token_of(*left + *right);
    if (a < 0 || b < 0 || both < 0)
      throw Failure(
          exit_failed,
          fmt::format("{}: model.merges: of pair {}, \"{}\" and \"{}\", not all tokens are in the vocabulary",
                      path, rank, model.merges[rank].first, model.merges[rank].second));
    merges_[pair_of(a, b)] = {static_cast<int32_t>(rank), both};
  }
}

int32_t BytePairs::token_of(std::string_view text) const {
  const auto found = vocabulary_.find(text);
  return found == vocabulary_.end() ? -1 : found->second;
}

// A character that has neither a token nor an unknown token yields no tokens.
void BytePairs::begin(std::string_view piece, std::vector<int32_t>& tokens) const {
  bool unknown_waits = false;  // the pending unknown token may absorb more characters
  const auto add_unknown = [&] {
    if (unknown_waits) tokens.push_back(unknown_);
    unknown_waits = false;
  };
  while (!piece.empty()) {
    const std::string_view symbol = piece.substr(0, of_bytes_ ? 1 : first_character(piece).bytes);
    piece.remove_prefix(symbol.size());
    const int32_t token = of_bytes_ ? byte_tokens_[static_cast<unsigned char>(symbol[0])] : token_of(symbol);
    if (token >= 0) {
      add_unknown();
      tokens.push_back(token);
      continue;
    }
    bool has_bytes = byte_fallback_ && !of_bytes_;
    for (const unsigned char byte : symbol) has_bytes = has_bytes && byte_tokens_[byte] >= 0;
    if (has_bytes) {
      for (const unsigned char byte : symbol) tokens.push_back(byte_tokens_[byte]);
    } else if (unknown_ >= 0) {
      if (!fuses_unknown_) add_unknown();
      unknown_waits = true;
    }
  }
  add_unknown();
}

void BytePairs::merge(std::vector<int32_t>& tokens) const {
  constexpr int32_t none = -1;
  struct Symbol {
    int32_t token, before, next;
  };  // token `none`: merged into the symbol before
  struct Candidate {
    int32_t rank, at, token;
    // the best on top
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  const auto count = static_cast<int32_t>(tokens.size());
  std::vector<Symbol> symbols;
  symbols.reserve(tokens.size());
  for (int32_t i = 0; i < count; ++i)
    symbols.push_back({tokens[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : none});
  const auto symbol = [&](int32_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };
  std::priority_queue<Candidate> candidates;
  const auto consider = [&](int32_t at) {
    if (at == none || symbol(at).next == none) return;
    const auto found = merges_.find(pair_of(symbol(at).token, symbol(symbol(at).next).token));
    if (found != merges_.end()) candidates.push({found->second.rank, at, found->second.token});
  };
  for (int32_t i = 0; i < count; ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Symbol& left = symbol(best.at);
    if (left.token == none || left.next == none) continue;
    Symbol& right = symbol(left.next);
    const auto still = merges_.find(pair_of(left.token, right.token));
    // a symbol of the pair has changed since
    if (still == merges_.end() || still->second.token != best.token) continue;
    left.token = best.token;
    left.next = right.next;
    right.token = none;
    if (left.next != none) symbol(left.next).before = best.at;
    consider(left.before);
    consider(best.at);
  }
  tokens.clear();
  for (int32_t i = count > 0 ? 0 : none; i != none; i = symbol(i).next) tokens.push_back(symbol(i).token);
}

void BytePairs::encode_new(std::string_view piece, std::vector<int32_t>& out) const {
  const int32_t whole = ignores_merges_ ? token_of(piece) : -1;
  if (whole >= 0) {
    out.push_back(whole);
    return;
  }
  begin(piece, out);
  merge(out);
}

}  // namespace command
