// Regular expressions as the tokenizers library reads them, which has Oniguruma for that, with its syntax of Ruby. Both find the same where they read
// the same: this translates such a pattern into PCRE2's syntax, or refuses it. PCRE2's newline must be \n alone, and its options UTF, UCP and MULTILINE.
//
// Source: Oniguruma's document RE, and what version 6.9.10 does. Where Unicode's versions differ, characters that the older one lacks may
// belong to other classes.
#pragma once
#include <string>
#include <string_view>

namespace command {

// Throws a Failure that names `path` and quotes the pattern where it is wrong there, or is not supported here.
std::string from_oniguruma(std::string_view pattern, const std::string& path);

}  // namespace command
