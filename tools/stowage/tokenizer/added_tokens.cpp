#include "added_tokens.h"

#include <algorithm>

#include "unicode.h"

namespace command {

void AddedTokens::add(const AddedToken& token, std::string as_found) {
  if (as_found.empty()) return;
  std::vector<Entry>& entries = by_byte_[static_cast<unsigned char>(as_found[0])];
  const auto shorter = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.content.size() < as_found.size(); });
  entries.insert(shorter, Entry{std::move(as_found), token});
}

const AddedTokens::Entry* AddedTokens::find(std::string_view text, size_t at) const {
  for (const Entry& entry : by_byte_[static_cast<unsigned char>(text[at])])
    if (text.substr(at).starts_with(entry.content)) return &entry;
  return nullptr;
}

void AddedTokens::split(std::string_view text, const std::function<void(const AddedToken*, std::string_view, size_t)>& take) const {
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
      for (Character c; begin > done && is_space((c = last_character(text.substr(0, begin))).code);) begin -= c.bytes;
    if (token.takes_right)
      for (Character c; end < text.size() && is_space((c = first_character(text.substr(end))).code);) end += c.bytes;
    begin = std::max(begin, done);
    if (begin > done) take(nullptr, text.substr(done, begin - done), done);
    take(&token, text.substr(begin, end - begin), begin);
    done = end;
  }
  if (done < text.size()) take(nullptr, text.substr(done), done);
}

}  // namespace command
