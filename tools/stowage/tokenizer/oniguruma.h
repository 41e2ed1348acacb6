// Translates regular expressions of the tokenizers library into PCRE2's syntax. The library uses Oniguruma
// with Ruby's syntax. Patterns that PCRE2 cannot match in the same way are refused. PCRE2 must run with \n as
// its only newline and with the options UTF, UCP and MULTILINE.
//
// Source: Oniguruma's document RE, and the behaviour of version 6.9.10. The two libraries have different
// versions of Unicode, so a character that the older one lacks may be in different classes.
#pragma once
#include <string>
#include <string_view>

namespace command {

// Throws a Failure that names `path` and quotes the pattern if it is malformed or not supported.
std::string from_oniguruma(std::string_view pattern, const std::string& path);

}  // namespace command
