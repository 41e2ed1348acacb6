// Finds added tokens in a text: of those that begin at one place the longest, and then what lies behind it.
#pragma once
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "description.h"

namespace command {

class AddedTokens {
 public:
  // `as_found`: what a token's content is in the text.
  void add(const AddedToken& token, std::string as_found);
  // In order, the pieces between tokens (token null), which are not empty, and the tokens. `begin`: where it begins in the text.
  void split(std::string_view text, const std::function<void(const AddedToken* token, std::string_view piece, size_t begin)>& take) const;

 private:
  struct Entry {
    std::string content;
    AddedToken token;
  };
  const Entry* find(std::string_view text, size_t at) const;
  std::array<std::vector<Entry>, 256> by_byte_;   // the first one; longer ones first
};

}  // namespace command
