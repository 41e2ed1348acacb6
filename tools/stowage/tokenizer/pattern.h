// Regular expressions over Unicode text, by PCRE2.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/description.h"

namespace command {

struct Match { size_t begin, end; };   // bytes

class Pattern {
 public:
  // Throws a Failure that names `path` where it is no regular expression.
  Pattern(const SearchedText& searched, const std::string& path);
  ~Pattern();
  Pattern(Pattern&&) noexcept;

  // The first match at or behind `from` that is not empty. `text` is UTF-8. Thread: one at a time.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;   // null: `literal_`
  std::string literal_, path_;
};

}  // namespace command
