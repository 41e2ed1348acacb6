// Finds added tokens in a text: of those that begin at one place the longest, and then what lies behind it.
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
  // Tokens, and what their contents are in the text.
  explicit AddedTokens(const std::vector<std::pair<AddedToken, std::string>>& tokens);
  // In order, the pieces between tokens (token null), which are not empty, and the tokens. `begin`: where it begins in the text.
  void split(std::string_view text, const std::function<void(const AddedToken* token, std::string_view piece, size_t begin)>& take) const;

 private:
  struct Entry {
    std::string content;
    AddedToken token;
    size_t shorter = 0;   // the place of the longest other one that this begins with, and 1; 0: none
  };
  const Entry* find(std::string_view text, size_t at) const;
  std::vector<Entry> entries_;   // sorted
  std::array<std::pair<size_t, size_t>, 256> by_byte_{};   // those that begin with it
};

}  // namespace command
