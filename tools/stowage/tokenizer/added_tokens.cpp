#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tokenizer/unicode.h"

namespace command {
namespace {

// Length of the common prefix.
size_t shared_bytes(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t at = 0;
  for (uint64_t x, y; at + 8 <= most; at += 8) {
    std::memcpy(&x, a.data() + at, 8);
    std::memcpy(&y, b.data() + at, 8);
    if (x != y) break;
  }
  while (at < most && a[at] == b[at]) ++at;
  return at;
}

}  // namespace

AddedTokens::AddedTokens(const std::vector<std::pair<AddedToken, std::string>>& tokens) {
  for (const auto& [token, content] : tokens)
    if (!content.empty()) entries_.push_back({content, token});
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.content < b.content; });
  const auto same = [](const Entry& a, const Entry& b) { return a.content == b.content; };
  // the first of equal contents counts
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t shorter = i;  // index + 1
    while (shorter > 0 && !entries_[i].content.starts_with(entries_[shorter - 1].content))
      shorter = entries_[shorter - 1].shorter;
    entries_[i].shorter = shorter;
    auto& [begin, end] = by_byte_[static_cast<unsigned char>(entries_[i].content[0])];
    if (begin == end) begin = i;
    end = i + 1;
  }
}

// All tokens that are prefixes of a text sort before it. The last of these has all others as its own
// prefixes, so following the links of shorter prefixes is fast even if many tokens share a beginning.
const AddedTokens::Entry* AddedTokens::find(std::string_view text, size_t at) const {
  const auto [begin, end] = by_byte_[static_cast<unsigned char>(text[at])];
  if (begin == end) return nullptr;
  const std::string_view rest = text.substr(at);
  const auto past =
      std::upper_bound(entries_.begin() + static_cast<std::ptrdiff_t>(begin),
                       entries_.begin() + static_cast<std::ptrdiff_t>(end), rest,
                       [](std::string_view found, const Entry& entry) { return found < entry.content; });
  auto place = static_cast<size_t>(past - entries_.begin());
  if (place == begin) return nullptr;
  const size_t shared = shared_bytes(rest, entries_[place - 1].content);
  while (place > 0 && entries_[place - 1].content.size() > shared) place = entries_[place - 1].shorter;
  return place > 0 ? &entries_[place - 1] : nullptr;
}

void AddedTokens::split(std::string_view text,
                        const std::function<void(const AddedToken*, std::string_view, size_t)>& take) const {
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const Entry* const entry = find(text, at);
    if (!entry) {
      ++at;
      continue;
    }
    const AddedToken& token = entry->token;
    size_t begin = at, end = at + entry->content.size();
    at = end;
    if (token.single_word && ((begin > 0 && is_of_word(last_character(text.substr(0, begin)).code)) ||
                              (end < text.size() && is_of_word(first_character(text.substr(end)).code))))
      continue;
    if (token.takes_left)
      for (Character c; begin > done && is_space((c = last_character(text.substr(0, begin))).code);)
        begin -= c.bytes;
    if (token.takes_right)
      for (Character c; end < text.size() && is_space((c = first_character(text.substr(end))).code);)
        end += c.bytes;
    begin = std::max(begin, done);
    if (begin > done) take(nullptr, text.substr(done, begin - done), done);
    take(&token, text.substr(begin, end - begin), begin);
    done = end;
  }
  if (done < text.size()) take(nullptr, text.substr(done), done);
}

}  // namespace command
