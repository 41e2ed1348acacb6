#include "tokenizer/oniguruma.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <utf8proc.h>

#include "base/failure.h"
#include "base/utf8.h"

namespace command {
namespace {

// Contents of bracket expressions.
constexpr std::string_view spaces = R"(\t-\r\x{85}\p{Z})", hexadecimal = "0-9A-Fa-f",
                           letters_in_words = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
// also in \w and \p{Word}, but only outside of brackets
constexpr std::string_view also_in_words = R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
constexpr std::string_view any_character = "(?s:.)";

struct Flags {
  bool ignores_case = false, dot_is_all = false, extended = false;
};

// A set of characters. `inside` goes between brackets. Each of `others` is a pattern for one more character.
struct Set {
  std::string inside;
  std::vector<std::string> others;
  bool empty() const { return inside.empty() && others.empty(); }
};

std::string pattern_of(const Set& set, bool negated) {
  if (set.empty()) return negated ? std::string(any_character) : "(?!)";
  if (set.others.empty()) return fmt::format("[{}{}]", negated ? "^" : "", set.inside);
  std::string any = set.inside.empty() ? "" : fmt::format("[{}]|", set.inside);
  any += fmt::format("{}", fmt::join(set.others, "|"));
  return negated ? fmt::format("(?:(?!{}){})", any, any_character) : fmt::format("(?:{})", any);
}

struct PosixSet {
  std::string_view name, inside;
};
constexpr PosixSet posix_sets[] = {{"alnum", R"(\p{Alphabetic}\p{Nd})"},
                                   {"alpha", R"(\p{Alphabetic})"},
                                   {"ascii", R"(\x{0}-\x{7F})"},
                                   {"blank", R"(\t\p{Zs})"},
                                   {"cntrl", R"(\p{Cc})"},
                                   {"digit", R"(\p{Nd})"},
                                   {"lower", R"(\p{Lowercase})"},
                                   {"punct", R"(\p{P}\p{S})"},
                                   {"space", spaces},
                                   {"upper", R"(\p{Uppercase})"},
                                   {"word", letters_in_words},
                                   {"xdigit", hexadecimal}};
// Sets that exclude characters, as whole patterns.
constexpr PosixSet posix_patterns[] = {{"graph", R"([^\t-\r\x{85}\p{Z}\p{Cc}\p{Cn}\p{Cs}])"},
                                       {"print", R"([^\t-\r\x{85}\p{Zl}\p{Zp}\p{Cc}\p{Cn}\p{Cs}])"}};

bool has_all_letters(std::string_view name) {
  return name == "alnum" || name == "alpha" || name == "graph" || name == "print" || name == "word";
}

std::optional<Set> posix_set(std::string_view name) {
  for (const PosixSet& set : posix_sets)
    if (set.name == name) return Set{std::string(set.inside), {}};
  for (const PosixSet& set : posix_patterns)
    if (set.name == name) return Set{{}, {std::string(set.inside)}};
  return std::nullopt;
}

// Long names of general categories, in the form in which names are compared: lowercase, without spaces,
// underscores and hyphens.
constexpr std::pair<std::string_view, std::string_view> categories[] = {{"other", "C"},
                                                                        {"control", "Cc"},
                                                                        {"format", "Cf"},
                                                                        {"unassigned", "Cn"},
                                                                        {"privateuse", "Co"},
                                                                        {"surrogate", "Cs"},
                                                                        {"letter", "L"},
                                                                        {"casedletter", "L&"},
                                                                        {"lc", "L&"},
                                                                        {"lowercaseletter", "Ll"},
                                                                        {"modifierletter", "Lm"},
                                                                        {"otherletter", "Lo"},
                                                                        {"titlecaseletter", "Lt"},
                                                                        {"uppercaseletter", "Lu"},
                                                                        {"mark", "M"},
                                                                        {"combiningmark", "M"},
                                                                        {"spacingmark", "Mc"},
                                                                        {"enclosingmark", "Me"},
                                                                        {"nonspacingmark", "Mn"},
                                                                        {"number", "N"},
                                                                        {"decimalnumber", "Nd"},
                                                                        {"letternumber", "Nl"},
                                                                        {"othernumber", "No"},
                                                                        {"punctuation", "P"},
                                                                        {"connectorpunctuation", "Pc"},
                                                                        {"dashpunctuation", "Pd"},
                                                                        {"closepunctuation", "Pe"},
                                                                        {"finalpunctuation", "Pf"},
                                                                        {"initialpunctuation", "Pi"},
                                                                        {"otherpunctuation", "Po"},
                                                                        {"openpunctuation", "Ps"},
                                                                        {"symbol", "S"},
                                                                        {"currencysymbol", "Sc"},
                                                                        {"modifiersymbol", "Sk"},
                                                                        {"mathsymbol", "Sm"},
                                                                        {"othersymbol", "So"},
                                                                        {"separator", "Z"},
                                                                        {"lineseparator", "Zl"},
                                                                        {"paragraphseparator", "Zp"},
                                                                        {"spaceseparator", "Zs"}};
constexpr std::string_view short_categories[] = {"C",  "Cc", "Cf", "Cn", "Co", "Cs", "L",  "Ll", "Lm", "Lo",
                                                 "Lt", "Lu", "M",  "Mc", "Me", "Mn", "N",  "Nd", "Nl", "No",
                                                 "P",  "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S",  "Sc",
                                                 "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs"};
// Properties that have the same names in PCRE2.
constexpr std::string_view properties[] = {"Alphabetic",
                                           "ASCII_Hex_Digit",
                                           "Cased",
                                           "Case_Ignorable",
                                           "Dash",
                                           "Default_Ignorable_Code_Point",
                                           "Deprecated",
                                           "Diacritic",
                                           "Emoji",
                                           "Emoji_Component",
                                           "Emoji_Modifier",
                                           "Emoji_Modifier_Base",
                                           "Emoji_Presentation",
                                           "Extended_Pictographic",
                                           "Extender",
                                           "Grapheme_Base",
                                           "Grapheme_Extend",
                                           "Hex_Digit",
                                           "ID_Continue",
                                           "ID_Start",
                                           "Ideographic",
                                           "Join_Control",
                                           "Lowercase",
                                           "Math",
                                           "Noncharacter_Code_Point",
                                           "Pattern_Syntax",
                                           "Pattern_White_Space",
                                           "Quotation_Mark",
                                           "Radical",
                                           "Regional_Indicator",
                                           "Sentence_Terminal",
                                           "Soft_Dotted",
                                           "Terminal_Punctuation",
                                           "Unified_Ideograph",
                                           "Uppercase",
                                           "Variation_Selector",
                                           "White_Space",
                                           "XID_Continue",
                                           "XID_Start"};

std::string compared(std::string_view name) {
  std::string small;
  for (const char c : name)
    if (c != ' ' && c != '_' && c != '-') small += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return small;
}

// Whether full case folding turns the character into several characters. (?i) then compares those.
bool folds_to_several(int32_t code) {
  utf8proc_int32_t folded[8];
  int boundary = 0;
  return utf8proc_decompose_char(code, folded, 8, UTF8PROC_CASEFOLD, &boundary) > 1;
}
// Whether these two neighbouring characters can be the case folding of one character.
bool may_be_one_folded(int32_t first, int32_t second) {
  const auto small = [](int32_t c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; };
  const int32_t a = small(first), b = small(second);
  if (a == 's') return b == 's' || b == 't';
  if (a == 'f') return b == 'f' || b == 'i' || b == 'l';
  return b >= 0x80 && utf8proc_category(b) != UTF8PROC_CATEGORY_LO;  // combining marks, Greek, Armenian
}

class Translation {
 public:
  Translation(std::string_view pattern, const std::string& path) : pattern_(pattern), path_(path) {
    // Counts groups by their brackets. A bracket inside a class makes the count too large, which never
    // refuses a valid group number.
    for (size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] == '\\') ++i;
      else if (pattern.substr(i).starts_with("(?<") && !pattern.substr(i).starts_with("(?<=") &&
               !pattern.substr(i).starts_with("(?<!"))
        has_names_ = true;
      else if (pattern.substr(i).starts_with("(?'")) has_names_ = true;
      else if (pattern[i] == '(' && !pattern.substr(i).starts_with("(?")) ++groups_;
    }
  }

  std::string whole() {
    std::string out = alternatives({}).text;
    if (at_ < pattern_.size()) refuse("a closing parenthesis without an opening one");
    return out;
  }

 private:
  // An element that a quantifier can follow.
  struct Atom {
    std::string text;
    bool is_assertion = false;
    int32_t literal = -1;  // the character, if the atom is a single one
  };

  [[noreturn]] void refuse(std::string_view what) const {
    throw Failure(exit_failed, fmt::format("{}: the pattern {}: {}", path_, pattern_, what));
  }
  [[noreturn]] void refuse_unknown(std::string_view what) const {
    refuse(fmt::format("{} is not supported", what));
  }
  std::string_view rest() const { return pattern_.substr(std::min(at_, pattern_.size())); }
  bool ends() const { return at_ >= pattern_.size(); }
  bool take(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  int32_t take_character() {
    utf8proc_int32_t code = -1;
    const utf8proc_ssize_t length =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(pattern_.data() + at_),
                         static_cast<utf8proc_ssize_t>(pattern_.size() - at_), &code);
    if (length < 1) refuse("it is not UTF-8");
    at_ += static_cast<size_t>(length);
    return code;
  }

  static std::string escaped(int32_t code) {
    const bool is_plain = code < 0x80 && ((code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') ||
                                          (code >= 'a' && code <= 'z'));
    return is_plain ? std::string(1, static_cast<char>(code)) : fmt::format("\\x{{{:X}}}", code);
  }

  // The contents of a group. `asserts`: one of its alternatives is only an assertion, so the group must not
  // be repeated.
  struct Body {
    std::string text;
    bool asserts = false;
  };

  // Parses up to the closing parenthesis of the group, or to the end.
  Body alternatives(Flags flags) {
    if (++depth_ > 200) refuse_unknown("so deep a nesting of groups");
    std::string out;
    int32_t before = -1;  // the previous atom, if it is a single character
    int atoms = 0;        // in this alternative
    bool is_assertion = false, asserts = false;
    const auto end_alternative = [&] {
      asserts |= atoms == 1 && is_assertion;
      atoms = 0;
    };
    while (!ends() && rest()[0] != ')') {
      if (take("|")) {
        out += '|';
        before = -1;
        end_alternative();
        continue;
      }
      if (flags.extended && skip_space()) continue;
      if (take("(?#")) {
        const size_t end = comment_end();
        at_ = end;
        continue;
      }
      if (const auto changed = isolated_flags(flags)) {
        // The flags hold to the end of the group, including all further alternatives.
        const Body body = alternatives(*changed);
        out += group_of(*changed, body.text);
        is_assertion = body.asserts, atoms += 1;
        break;
      }
      Atom atom = this->atom(flags);
      if (flags.ignores_case && atom.literal >= 0) {
        if (folds_to_several(atom.literal))
          refuse_unknown("a letter under (?i) whose other case is several letters");
        if (before >= 0 && may_be_one_folded(before, atom.literal))
          refuse_unknown("letters under (?i) that are one letter in another case, such as ss and ß,");
      }
      before = atom.literal;
      is_assertion = atom.is_assertion, atoms += 1;
      out += with_quantifiers(std::move(atom), flags);
    }
    end_alternative();
    --depth_;
    return {std::move(out), asserts};
  }

  static std::string group_of(const Flags& flags, std::string_view body) {
    return fmt::format("(?{}{}:{})",
                       flags.ignores_case ? (flags.dot_is_all ? "is" : "i") : (flags.dot_is_all ? "s" : ""),
                       flags.ignores_case && flags.dot_is_all ? ""
                       : flags.ignores_case                   ? "-s"
                       : flags.dot_is_all                     ? "-i"
                                                              : "-is",
                       body);
  }

  size_t comment_end() const {
    for (size_t i = at_; i < pattern_.size(); ++i) {
      if (pattern_[i] == '\\') ++i;
      else if (pattern_[i] == ')') return i + 1;
    }
    refuse("a comment without an end");
  }

  // Skips white space and comments under (?x).
  bool skip_space() {
    const char c = rest()[0];
    if (c == '#') {
      const size_t end = pattern_.find('\n', at_);
      at_ = end == std::string_view::npos ? pattern_.size() : end + 1;
      return true;
    }
    if (c != ' ' && (c < '\t' || c > '\r')) return false;
    ++at_;
    return true;
  }

  // Parses (?imx-imx), or, with a colon instead of the parenthesis, the beginning of a group. Does not move
  // if it is neither.
  std::optional<Flags> flags_until(char end, Flags flags) {
    const size_t begin = at_;
    bool on = true;
    at_ += 2;
    while (!ends()) {
      const char c = pattern_[at_++];
      if (c == end) return flags;
      if (c == '-') on = false;
      else if (c == 'i') flags.ignores_case = on;
      else if (c == 'm') flags.dot_is_all = on;
      else if (c == 'x') flags.extended = on;
      else break;
    }
    at_ = begin;
    return std::nullopt;
  }
  std::optional<Flags> isolated_flags(const Flags& flags) {
    return rest().starts_with("(?") ? flags_until(')', flags) : std::nullopt;
  }

  std::string with_quantifiers(Atom atom, const Flags& flags) {
    std::string text = std::move(atom.text);
    bool is_lazy = false;  // whether the last quantifier was lazy
    for (bool first = true;; first = false) {
      while (flags.extended && !ends() && skip_space()) {}
      const std::string quantifier = this->quantifier();
      if (quantifier.empty()) return text;
      if (atom.is_assertion) refuse("a quantifier after an assertion, which matches no characters");
      if (!first && is_lazy && quantifier.ends_with('+') && quantifier.size() > 1)
        refuse_unknown("a possessive quantifier after a lazy one");
      is_lazy = quantifier.size() > 1 && quantifier.ends_with('?');
      text = first ? text + quantifier : fmt::format("(?:{}){}", text, quantifier);
    }
  }

  std::string quantifier() {
    if (ends()) return {};
    const char c = rest()[0];
    if (c == '*' || c == '+' || c == '?') {
      ++at_;
      std::string text(1, c);
      if (!ends() && (rest()[0] == '?' || rest()[0] == '+')) text += pattern_[at_++];
      return text;
    }
    return c == '{' ? interval() : "";
  }

  // Parses {n}, {n,}, {,m} or {n,m}. Other braces are literal. A lazy {n}? and a possessive {n,m}+ are two
  // quantifiers.
  std::string interval() {
    size_t i = at_ + 1;
    const auto number = [&]() -> std::optional<uint64_t> {
      uint64_t value = 0;
      const size_t begin = i;
      for (; i < pattern_.size() && pattern_[i] >= '0' && pattern_[i] <= '9'; ++i)
        value = std::min<uint64_t>(10 * value + static_cast<uint64_t>(pattern_[i] - '0'), 1000000);
      if (i == begin) return std::nullopt;
      if (value > 65535)
        refuse(value > 100000 ? "a number of repetitions that is too big"
                              : "more than 65,535 repetitions are not supported");
      return value;
    };
    const std::optional<uint64_t> low = number();
    const bool has_comma = i < pattern_.size() && pattern_[i] == ',';
    i += has_comma;
    const std::optional<uint64_t> high = has_comma ? number() : low;
    if ((!low && !high) || i >= pattern_.size() || pattern_[i] != '}') return {};
    at_ = i + 1;
    if (low && !high) return fmt::format("{{{},}}{}", *low, take("?") ? "?" : "");
    const uint64_t least = low.value_or(0);
    if (least > *high) return fmt::format("{{{},{}}}+", *high, least);
    const bool is_lazy = has_comma && take("?");
    return fmt::format("{{{},{}}}{}", least, *high, is_lazy ? "?" : "");
  }

  Atom atom(const Flags& flags) {
    const char c = rest()[0];
    if (c == '(') return group(flags);
    if (c == '[') {
      ++at_;
      return {bracketed(flags)};
    }
    if (c == '\\') return escape(flags);
    if (c == '*' || c == '+' || c == '?') refuse("a quantifier with nothing before it");
    if (c == '{' && !interval().empty()) refuse("a quantifier with nothing before it");
    if (c == '.') return ++at_, Atom{flags.dot_is_all ? std::string(any_character) : R"([^\n])"};
    if (c == '^' || c == '$') return ++at_, Atom{std::string(1, c), true};
    const int32_t code = take_character();
    return {escaped(code), false, code};
  }

  Atom group(const Flags& flags) {
    if (rest().starts_with("(*")) refuse_unknown("a callout");
    struct Opening {
      std::string_view text;
      bool is_assertion;
    };
    for (const Opening& opening : {Opening{"(?:", false},
                                   {"(?=", true},
                                   {"(?!", true},
                                   {"(?>", false},
                                   {"(?<=", true},
                                   {"(?<!", true}})
      if (take(opening.text)) {
        const Body body = closed(flags);
        return {std::string(opening.text) + body.text,
                opening.is_assertion || (opening.text == "(?:" && body.asserts)};
      }
    if (rest().starts_with("(?<") || rest().starts_with("(?'")) {
      const size_t end = pattern_.find(pattern_[at_ + 2] == '<' ? '>' : '\'', at_ + 3);
      if (end == std::string_view::npos || end == at_ + 3) refuse("a group's name without an end");
      at_ = end + 1;
      return {"(?:" + closed(flags).text};  // no back reference refers to it
    }
    if (rest().starts_with("(?")) {
      if (const auto changed = flags_until(':', flags)) {
        const Body body = closed(*changed);
        return {group_of(*changed, std::string_view(body.text).substr(0, body.text.size() - 1)),
                body.asserts};
      }
      refuse_unknown(fmt::format("a group that begins with {}", rest().substr(0, 3)));
    }
    ++at_;
    return {(has_names_ ? "(?:" : "(") + closed(flags).text};
  }
  Body closed(const Flags& flags) {
    Body body = alternatives(flags);
    if (!take(")")) refuse("a parenthesis without its other one");
    body.text += ')';
    return body;
  }

  std::string property(bool outside, const Flags& flags, Set& set) {
    const bool is_negated_letter = pattern_[at_ - 1] == 'P';
    if (!take("{")) refuse_unknown("a property without braces");
    const bool is_negated = take("^") != is_negated_letter;
    const size_t end = pattern_.find('}', at_);
    if (end == std::string_view::npos) refuse("a property without a closing brace");
    const std::string_view name = pattern_.substr(at_, end - at_);
    at_ = end + 1;
    const std::string key = compared(name);
    Set found;
    bool has_case = false;
    if (key == "word" && outside) found.inside = fmt::format("{}{}", letters_in_words, also_in_words);
    else if (key == "punct") found.inside = R"(\p{P})";  // differs from [[:punct:]]
    else if (const auto posix = posix_set(key)) found = *posix, has_case = key == "lower" || key == "upper";
    else if (key == "any") found.inside = R"(\x{0}-\x{10FFFF})";
    else if (key == "assigned") found.others = {R"(\P{Cn})"};
    else found.inside = fmt::format("\\p{{{}}}", name_of_property(name, key, has_case));
    if (has_case && flags.ignores_case && !outside)
      refuse_unknown(fmt::format("\\p{{{}}} in a class under (?i)", name));
    std::string text = pattern_of(found, is_negated);
    if (has_case && flags.ignores_case) text = fmt::format("(?-i:{})", text);
    if (is_negated || !found.others.empty()) set.others.push_back(text);
    else set.inside += found.inside;
    return text;
  }

  std::string name_of_property(std::string_view name, const std::string& key, bool& has_case) const {
    const auto with_case = [&](std::string_view category) {
      has_case = category == "Lu" || category == "Ll" || category == "Lt" || category == "L&";
      return std::string(category);
    };
    for (const auto& [other, category] : categories)
      if (key == other) return with_case(category);
    for (const std::string_view category : short_categories)
      if (key == compared(category)) return with_case(category);
    for (const std::string_view known : properties)
      if (key == compared(known))
        return has_case = known == "Lowercase" || known == "Uppercase", std::string(known);
    const bool is_a_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ' ' || c == '-';
    });
    if (!is_a_name || key.starts_with("in")) refuse_unknown(fmt::format("the property {}", name));
    return fmt::format("sc:{}", name);  // sc: matches the script, not its extensions
  }

  // The number after \x, \u, \o and \0.
  int32_t code_in(size_t digits, int base) {
    const size_t end = std::min(pattern_.size(), at_ + digits);
    uint32_t value = 0;
    const auto read = std::from_chars(pattern_.data() + at_, pattern_.data() + end, value, base);
    if (read.ec != std::errc()) refuse("an escape without its number");
    at_ = static_cast<size_t>(read.ptr - pattern_.data());
    return static_cast<int32_t>(value);
  }
  int32_t in_braces(int base) {
    const int32_t code = code_in(8, base);
    if (!take("}")) refuse_unknown("an escape with several numbers, or with no end,");
    if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      refuse("a number that stands for no character");
    return code;
  }

  // The character of an escape, or -1. `c` follows the backslash and is already consumed.
  int32_t escaped_character(char c, bool in_class) {
    constexpr std::pair<char, char> controls[] = {{'t', '\t'}, {'n', '\n'}, {'r', '\r'},  {'f', '\f'},
                                                  {'v', '\v'}, {'a', '\a'}, {'e', '\x1b'}};
    for (const auto& [letter, code] : controls)
      if (c == letter) return code;
    if (c == 'b' && in_class) return '\b';
    if (c == 'x') {
      if (take("{")) return in_braces(16);
      const int32_t code = code_in(2, 16);
      if (code >= 0x80) refuse_unknown("a byte of a character");
      return code;
    }
    if (c == 'u') {
      const size_t begin = at_;
      const int32_t code = code_in(4, 16);
      if (at_ != begin + 4 || (code >= 0xD800 && code < 0xE000))
        refuse("an escape \\u that stands for no character");
      return code;
    }
    if (c == 'o' && take("{")) return in_braces(8);
    if (c == '0') {
      --at_;
      const int32_t code = code_in(3, 8);
      return code;
    }
    if (c == 'c') {
      if (ends() || rest()[0] == '\\' || static_cast<unsigned char>(rest()[0]) >= 0x80)
        refuse_unknown("such a control character");
      return pattern_[at_++] & 0x1f;
    }
    if (c == 'C' || c == 'M') refuse_unknown(fmt::format("\\{}", c));
    return -1;
  }

  // The set of an escape such as \d. The second value is true if the set is negated.
  static std::optional<std::pair<std::string, bool>> set_of(char c, bool outside) {
    switch (c) {
      case 's':
      case 'S': return std::pair{std::string(spaces), c == 'S'};
      case 'd':
      case 'D': return std::pair{std::string(R"(\p{Nd})"), c == 'D'};
      case 'h':
      case 'H': return std::pair{std::string(hexadecimal), c == 'H'};
      case 'w':
      case 'W':
        return std::pair{
            outside ? fmt::format("{}{}", letters_in_words, also_in_words) : std::string(letters_in_words),
            c == 'W'};
      default: return std::nullopt;
    }
  }

  char take_escaped() {
    ++at_;
    if (ends()) refuse("it ends with a backslash");
    if (static_cast<unsigned char>(rest()[0]) >= 0x80) return 0;
    return pattern_[at_++];
  }

  Atom escape(const Flags& flags) {
    const char c = take_escaped();
    if (c == 0) {
      const int32_t code = take_character();
      return {escaped(code), false, code};
    }
    if (const auto set = set_of(c, true))
      return {fmt::format("(?-i:[{}{}])", set->second ? "^" : "", set->first)};
    const std::string word = fmt::format("[{}{}]", letters_in_words, also_in_words);
    switch (c) {
      case 'p':
      case 'P': {
        Set unused;
        return {property(true, flags, unused)};
      }
      case 'A':
      case 'Z':
      case 'z':
      case 'G': return {fmt::format("\\{}", c), true};
      case 'b': return {fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word), true};
      case 'B': return {fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", word), true};
      case 'K': return {"\\K", true};
      case 'R': return {R"((?>\r\n|[\n-\r\x{85}\x{2028}\x{2029}]))"};
      case 'N': return {R"([^\n])"};
      case 'O': return {std::string(any_character)};
      case 'X':
      case 'y':
      case 'Y':
      case 'k':
      case 'g': refuse_unknown(fmt::format("\\{}", c));
      default: break;
    }
    if (c >= '1' && c <= '9') {
      const int number = c - '0';
      if (has_names_) refuse("a group by its number where others have names");
      if (!ends() && rest()[0] >= '0' && rest()[0] <= '9')
        refuse_unknown("a number of two digits after a backslash");
      if (number > groups_) refuse("the number of a group that is not there");
      return {fmt::format("\\g{{{}}}", number)};
    }
    const int32_t code = escaped_character(c, false);
    const int32_t literal = code >= 0 ? code : c;
    return {escaped(literal), false, literal};
  }

  // A class that is being parsed.
  struct Class {
    const Flags& flags;
    bool negated;
    Set set;
    std::vector<std::string> operands;  // completed operands of &&
    struct Value {
      int32_t code;
      bool is_set;
    };
    std::optional<Value> last;  // possible start of a range

    bool folds() const { return flags.ignores_case && !negated; }
  };

  void refuse_folding(int32_t code) const {
    if (folds_to_several(code))
      refuse_unknown("a letter in a class under (?i) whose other case is several letters");
  }
  void add(Class& c, int32_t code) const {
    if (c.folds()) refuse_folding(code);
    c.set.inside += escaped(code);
    c.last = Class::Value{code, false};
  }
  // A set with letters beyond ASCII contains ß and ﬁ, which match two letters under (?i).
  void add_set(Class& c, Set more, bool has_letters) const {
    if (c.folds() && has_letters) refuse_unknown("a set of letters in a class under (?i)");
    c.set.inside += more.inside;
    c.set.others.insert(c.set.others.end(), more.others.begin(), more.others.end());
    c.last = Class::Value{0, true};
  }
  // Parses [:name:]. Returns false if the text is something else.
  bool take_posix_set(Class& c) {
    if (!rest().starts_with("[:")) return false;
    const size_t end = pattern_.find(":]", at_ + 2);
    if (end == std::string_view::npos || end - at_ >= 20) return false;
    std::string_view name = pattern_.substr(at_ + 2, end - at_ - 2);
    const bool is_negated = name.starts_with("^");
    name.remove_prefix(is_negated);
    auto found = posix_set(name);
    if (!found) refuse_unknown(fmt::format("the class [:{}:]", name));
    if (c.flags.ignores_case && (name == "lower" || name == "upper"))
      refuse_unknown(fmt::format("[:{}:] under (?i)", name));
    at_ = end + 2;
    add_set(c, is_negated ? Set{{}, {pattern_of(*found, true)}} : std::move(*found),
            has_all_letters(name) != is_negated);
    return true;
  }
  // Parses the hyphen and the end of a range. Returns false if the hyphen is literal, or if there is none.
  bool take_range(Class& c) {
    if (rest()[0] != '-' || !c.last || rest().starts_with("-]")) return false;
    if (c.last->is_set) refuse_unknown("a hyphen after a set or a range in a class");
    if (rest().starts_with("-&&")) return false;
    ++at_;
    const int32_t begin = c.last->code, end = range_end();
    if (end < begin) refuse("a range of characters that ends before it begins");
    if (c.folds() && (begin >= 0x80 || end >= 0x80))
      for (int32_t code = begin; code <= end && code < begin + 0x3000; ++code) refuse_folding(code);
    c.set.inside += fmt::format("-{}", escaped(end));
    c.last = Class::Value{0, true};
    return true;
  }
  // Parses an escape sequence. The backslash is not yet consumed.
  void take_escape(Class& c) {
    const char letter = take_escaped();
    if (letter == 0) {
      add(c, take_character());
    } else if (const auto found = set_of(letter, false)) {
      add_set(c, found->second ? Set{{}, {fmt::format("[^{}]", found->first)}} : Set{found->first, {}},
              letter == 'w' || letter == 'S' || letter == 'D' || letter == 'H');
    } else if (letter == 'p' || letter == 'P') {
      Set more;
      property(false, c.flags, more);
      add_set(c, std::move(more), true);
    } else if ((letter >= '1' && letter <= '9') || letter == 'R' || letter == 'X' || letter == 'N' ||
               letter == 'O') {
      refuse_unknown(fmt::format("\\{} in a class", letter));
    } else {
      const int32_t code = escaped_character(letter, true);
      add(c, code >= 0 ? code : letter);
    }
  }
  // The pattern of PCRE2 for a whole class.
  std::string finished(const Class& c, bool is_nested) const {
    // Oniguruma applies case folding to the outermost class, which can bring back excluded characters.
    if (c.flags.ignores_case && c.negated && (!c.operands.empty() || is_nested))
      refuse_unknown("a negated class under (?i) in another one, or of an intersection,");
    if (c.operands.empty()) return pattern_of(c.set, c.negated);
    std::string all;
    for (const std::string& operand : c.operands) all += fmt::format("(?={})", operand);
    all += pattern_of(c.set, false);
    return c.negated ? fmt::format("(?:(?!{}){})", all, any_character) : fmt::format("(?:{})", all);
  }

  // Parses a class. The opening bracket is already consumed.
  std::string bracketed(const Flags& flags, bool is_nested = false) {
    if (++depth_ > 200) refuse_unknown("so deep a nesting of classes");
    Class c{flags, take("^"), {}, {}, {}};
    for (bool any = false;; any = true) {
      if (ends()) refuse("a class without an end");
      if (!any && rest()[0] == ']') {
        if (pattern_.find(']', at_ + 1) == std::string_view::npos) refuse("an empty class");
        ++at_;
        add(c, ']');
        continue;
      }
      if (take("]")) break;
      if (take("&&")) {
        c.operands.push_back(pattern_of(std::exchange(c.set, {}), false));
        c.last.reset();
        continue;
      }
      if (take_posix_set(c)) continue;
      if (take("[")) {
        add_set(c, {{}, {bracketed(flags, true)}}, false);
        c.last.reset();  // a hyphen after a set is literal
        continue;
      }
      if (take_range(c)) continue;
      if (rest()[0] == '\\') take_escape(c);
      else add(c, take_character());
    }
    --depth_;
    return finished(c, is_nested);
  }

  int32_t range_end() {
    if (ends()) refuse("a class without an end");
    if (rest()[0] == '[') refuse_unknown("a class at the end of a range");
    if (rest()[0] != '\\') return take_character();
    const char c = take_escaped();
    if (c == 0) return take_character();
    if (set_of(c, false) || c == 'p' || c == 'P' || (c >= '1' && c <= '9'))
      refuse("a set at the end of a range");
    const int32_t code = escaped_character(c, true);
    return code >= 0 ? code : c;
  }

  std::string_view pattern_;
  const std::string& path_;
  size_t at_ = 0;
  int groups_ = 0, depth_ = 0;
  bool has_names_ = false;
};

}  // namespace

std::string from_oniguruma(std::string_view pattern, const std::string& path) {
  return Translation(pattern, path).whole();
}

}  // namespace command
