// Regular expressions over Unicode text, matched by Oniguruma, as in the tokenizers library.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/description.h"

namespace command {

struct Match {
  size_t begin, end;
};  // bytes

class Pattern {
 public:
  // Throws a Failure that names `path` if the regular expression is malformed.
  Pattern(const SearchedText& searched, const std::string& path);
  ~Pattern();
  Pattern(Pattern&&) noexcept;

  // The first non-empty match at or after `from`. `text` is UTF-8. Thread: one at a time.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  // The first match, which may be empty.
  std::optional<Match> search(std::string_view text, size_t from) const;

  struct Compiled;
  std::unique_ptr<Compiled> compiled_;  // null: `literal_` is used
  std::string literal_, path_;
};

}  // namespace command
