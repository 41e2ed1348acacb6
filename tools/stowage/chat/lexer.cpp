#include "chat/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "chat/value.h"

namespace command::chat {
namespace {

using T = Token::Kind;

constexpr std::string_view spaces = " \t\n\r\f\v";
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Normalizes line ends as Jinja does and drops the last one.
std::string with_line_feeds(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') text += source[i];
    else if (i + 1 == source.size() || source[i + 1] != '\n') text += '\n';
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Cutter {
 public:
  explicit Cutter(std::string_view source) : held_(with_line_feeds(source)), text_(held_) {}

  std::vector<Token> all() {
    while (at_ < text_.size()) {
      const size_t tag = next_tag(at_);
      const std::string_view opening = text_.substr(tag, 2);
      std::string_view between = text_.substr(at_, tag - at_);
      const char sign = tag + 2 < text_.size() ? text_[tag + 2] : ' ';
      if (sign == '-' && tag < text_.size()) between = without_end(between, spaces);
      else if (sign != '+' && (opening == "{%" || opening == "{#")) between = without_indent(between);
      add_text(between);
      advance(tag);
      if (at_ >= text_.size()) break;
      advance(at_ + 2 + (sign == '-' || sign == '+'));
      if (opening == "{#") comment();
      else if (opening == "{%" && is_raw()) raw();
      else words(opening == "{%");
    }
    tokens_.push_back({T::end, "", line_});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw TemplateError(fmt::format("line {}: {}", line_, what));
  }

  size_t next_tag(size_t from) const {
    for (; (from = text_.find('{', from)) != std::string_view::npos; ++from)
      if (from + 1 < text_.size() &&
          (text_[from + 1] == '{' || text_[from + 1] == '%' || text_[from + 1] == '#'))
        return from;
    return text_.size();
  }
  static std::string_view without_end(std::string_view text, std::string_view characters) {
    const size_t last = text.find_last_not_of(characters);
    return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
  }
  // Removes blanks before a tag that comes first on its line.
  std::string_view without_indent(std::string_view text) const {
    const std::string_view rest = without_end(text, " \t\v\f");
    return rest.empty() ? (starts_line_ ? rest : text) : rest.ends_with('\n') ? rest : text;
  }
  void add_text(std::string_view text) {
    if (!text.empty()) tokens_.push_back({T::text, std::string(text), line_});
  }
  void advance(size_t to) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                                         text_.begin() + static_cast<ptrdiff_t>(to), '\n'));
    at_ = to;
  }
  // Handles the text after a tag. `sign` stands before the tag's end.
  void after_tag(char sign, bool trims) {
    starts_line_ = false;
    if (sign == '-') {
      const size_t next = text_.find_first_not_of(spaces, at_);
      advance(next == std::string_view::npos ? text_.size() : next);
      starts_line_ = at_ > 0 && text_[at_ - 1] == '\n';
    } else if (trims && sign != '+' && at_ < text_.size() && text_[at_] == '\n') {
      advance(at_ + 1);
      starts_line_ = true;
    }
  }
  void comment() {
    const size_t end = text_.find("#}", at_);
    if (end == std::string_view::npos) fail("a comment has no end");
    const char sign = end > at_ ? text_[end - 1] : ' ';
    advance(end + 2);
    after_tag(sign, true);
  }
  // Whether this tag is {% raw %}. The current position is at its name.
  bool is_raw() const {
    const size_t begin = text_.find_first_not_of(spaces, at_);
    return begin != std::string_view::npos && text_.substr(begin).starts_with("raw") &&
           (begin + 3 >= text_.size() || !is_letter(text_[begin + 3]));
  }
  void raw() {
    const size_t end = text_.find("%}", at_);
    if (end == std::string_view::npos) fail("a tag has no end");
    const char sign = text_[end - 1];
    advance(end + 2);
    after_tag(sign, true);
    for (size_t tag = at_; (tag = text_.find("{%", tag)) != std::string_view::npos; tag += 2) {
      const char before = tag + 2 < text_.size() ? text_[tag + 2] : ' ';
      const size_t name = text_.find_first_not_of(spaces, tag + 2 + (before == '-' || before == '+'));
      if (name == std::string_view::npos || !text_.substr(name).starts_with("endraw")) continue;
      const std::string_view inside = text_.substr(at_, tag - at_);
      add_text(before == '-' ? without_end(inside, spaces) : before == '+' ? inside : without_indent(inside));
      const size_t close = text_.find("%}", name);
      if (close == std::string_view::npos) fail("a tag has no end");
      const char end_sign = text_[close - 1];
      advance(close + 2);
      return after_tag(end_sign, true);
    }
    fail("{% raw %} has no end");
  }

  // Reads the tokens of a tag up to its end.
  void words(bool is_block) {
    tokens_.push_back({is_block ? T::begin_block : T::begin_output, "", line_});
    const std::string_view close = is_block ? "%}" : "}}";
    int open = 0;  // open brackets: inside of them }} ends mappings, not the tag
    for (;;) {
      const size_t next = text_.find_first_not_of(spaces, at_);
      if (next == std::string_view::npos) fail("a tag has no end");
      advance(next);
      const std::string_view rest = text_.substr(at_);
      if (open == 0) {
        const bool has_sign = (rest[0] == '-' || rest[0] == '+') && rest.substr(1).starts_with(close);
        if (has_sign || rest.starts_with(close)) {
          const char sign = has_sign ? rest[0] : ' ';
          tokens_.push_back({is_block ? T::end_block : T::end_output, "", line_});
          advance(at_ + close.size() + has_sign);
          return after_tag(sign, is_block);
        }
      }
      if (is_letter(rest[0])) word();
      else if (is_digit(rest[0])) number();
      else if (rest[0] == '"' || rest[0] == '\'') string();
      else sign(rest, open);
    }
  }
  void word() {
    size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    add(T::name, std::string(text_.substr(at_, end - at_)), end);
  }
  void number() {
    size_t end = at_;
    bool is_real = false;
    const auto digits = [&] {
      while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '_')) ++end;
    };
    digits();
    if (end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1]))
      is_real = true, ++end, digits();
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '-' || text_[exponent] == '+')) ++exponent;
      if (exponent < text_.size() && is_digit(text_[exponent])) is_real = true, end = exponent, digits();
    }
    std::string text(text_.substr(at_, end - at_));
    std::erase(text, '_');
    add(is_real ? T::real : T::integer, std::move(text), end);
  }
  void string() {
    const char quote = text_[at_];
    std::string value;
    size_t i = at_ + 1;
    for (; i < text_.size() && text_[i] != quote; ++i) {
      if (text_[i] != '\\') value += text_[i];
      else if (++i < text_.size()) escape(value, i);
    }
    if (i >= text_.size()) fail("a string has no end");
    add(T::string, std::move(value), i + 1);
  }
  // Decodes the escape whose letter is at i. Leaves i at the last character of the escape.
  void escape(std::string& value, size_t& i) const {
    constexpr std::string_view letters = "ntrbfav0\\'\"\n", meanings("\n\t\r\b\f\a\v\0\\'\"", 11);
    const char c = text_[i];
    if (const size_t found = letters.find(c); found < meanings.size()) {
      value += meanings[found];
    } else if (c == '\n') {
      return;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      uint32_t code = 0;
      for (size_t k = 1; k <= digits; ++k) {
        const char d = i + k < text_.size() ? text_[i + k] : ' ';
        const int digit = is_digit(d)            ? d - '0'
                          : d >= 'a' && d <= 'f' ? d - 'a' + 10
                          : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                                 : -1;
        if (digit < 0) fail("a string has an escape that is cut off");
        code = code * 16 + static_cast<uint32_t>(digit);
      }
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        fail("a string has an escape that stands for no character");
      append_utf8(value, code);
      i += digits;
    } else {
      (value += '\\') += c;
    }
  }
  void sign(std::string_view rest, int& open) {
    constexpr std::array<std::string_view, 25> signs = {"**", "//", "==", "!=", "<=", ">=", "+", "-", "*",
                                                        "/",  "%",  "~",  "<",  ">",  "=",  "(", ")", "[",
                                                        "]",  "{",  "}",  ",",  ":",  ".",  "|"};
    const auto found =
        std::find_if(signs.begin(), signs.end(), [&](std::string_view s) { return rest.starts_with(s); });
    if (found == signs.end()) fail(fmt::format("unexpected '{}'", rest[0]));
    if (*found == "(" || *found == "[" || *found == "{") ++open;
    if ((*found == ")" || *found == "]" || *found == "}") && --open < 0)
      fail(fmt::format("unexpected '{}'", *found));
    add(T::sign, std::string(*found), at_ + found->size());
  }
  void add(T kind, std::string text, size_t end) {
    tokens_.push_back({kind, std::move(text), line_});
    advance(end);
  }

  const std::string held_;
  const std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool starts_line_ = true;  // whether the next text starts a line
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> cut(std::string_view source) { return Cutter(source).all(); }

}  // namespace command::chat
