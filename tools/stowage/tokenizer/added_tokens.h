// Finds added tokens in a text: at each position the longest one, then the search continues after it.
#pragma once
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/description.h"

namespace command {

class AddedTokens {
 public:
  AddedTokens() = default;
  // Pairs of a token and its content in the text.
  explicit AddedTokens(const std::vector<std::pair<AddedToken, std::string>>& tokens);
  // Calls back for the tokens and for the non-empty pieces between them (token null), in order. `begin`:
  // offset in the text.
  void split(
      std::string_view text,
      const std::function<void(const AddedToken* token, std::string_view piece, size_t begin)>& take) const;

 private:
  struct Entry {
    std::string content;
    AddedToken token;
    size_t shorter = 0;  // index + 1 of the longest other entry that is a prefix of this one; 0: none
  };
  const Entry* find(std::string_view text, size_t at) const;
  std::vector<Entry> entries_;                            // sorted
  std::array<std::pair<size_t, size_t>, 256> by_byte_{};  // range of entries that begin with this byte
};

}  // namespace command
