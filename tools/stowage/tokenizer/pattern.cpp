#include "tokenizer/pattern.h"

#include <fmt/format.h>
#include <oniguruma.h>

#include <climits>
#include <new>

#include "base/failure.h"
#include "base/units.h"
#include "base/utf8.h"

namespace command {
namespace {

const OnigUChar* as_bytes(std::string_view text) { return reinterpret_cast<const OnigUChar*>(text.data()); }

// How often a match may go back and try another way: the default of Oniguruma, and so of the tokenizers
// library. All tries of one search, each from another place, may do it more often.
constexpr unsigned long most_retries = 10'000'000, most_retries_of_search = 100'000'000,
                        most_retries_per_byte = 32;
// Places of 32 bytes to go back to. Most repetitions take one for every character.
constexpr unsigned most_places = 1u << 24;

std::string message_of(int code, OnigErrorInfo* info = nullptr) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN] = {};
  onig_error_code_to_str(text, code, info);
  return reinterpret_cast<const char*>(text);
}

using Regex = std::unique_ptr<OnigRegexType, void (*)(OnigRegexType*)>;

// With the syntax and the options of the tokenizers library.
int compile(std::string_view pattern, Regex& regex, OnigErrorInfo* info) {
  static OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
  static const int begun = onig_initialize(encodings, 1);
  if (begun != ONIG_NORMAL) throw std::bad_alloc();
  OnigRegexType* made = nullptr;
  const int code = onig_new(&made, as_bytes(pattern), as_bytes(pattern) + pattern.size(), ONIG_OPTION_NONE,
                            ONIG_ENCODING_UTF8, ONIG_SYNTAX_ONIGURUMA, info);
  regex.reset(made);
  if (code == ONIGERR_MEMORY) throw std::bad_alloc();
  return code;
}

// A part of patterns that older versions of Oniguruma match in another way than the tokenizers library, and a
// pattern with it that must match all of a text. Last seen in version 6.9.8, with Unicode 14.
struct Fault {
  std::string_view part, probe, text;
};
constexpr Fault faults[] = {
    {"\\R", "\\R+", "\n\n"}, {"[:punct:]", "[[:punct:]]", "+"}, {"{word}", "\\p{word}", "\xC2\xB2"}};

bool is_faulty(const Fault& fault) {
  Regex regex(nullptr, onig_free);
  const OnigUChar* const begin = as_bytes(fault.text);
  const OnigUChar* const end = begin + fault.text.size();
  return compile(fault.probe, regex, nullptr) != ONIG_NORMAL ||
         onig_match(regex.get(), begin, end, begin, nullptr, ONIG_OPTION_NONE) != end - begin;
}

// Without backslashes that stand for themselves, and with each property and class in its simplest form.
std::string simplified(std::string_view pattern) {
  std::string out;
  bool in_name = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (pattern.substr(i, 2) == "\\\\") ++i;
    else if (!in_name) out += c;
    else if (c != '^' && c != '_' && c != '-' && c != ' ')
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (in_name) in_name = c != '}' && c != ':';
    else in_name = c == '{' || (c == ':' && i > 0 && pattern[i - 1] == '[');
  }
  return out;
}

void refuse_faults(const std::string& pattern, const std::string& path) {
  const std::string simple = simplified(pattern);
  for (const Fault& fault : faults)
    if (simple.find(fault.part) != std::string::npos && is_faulty(fault))
      throw Failure(exit_failed,
                    fmt::format("{}: the pattern {}: Oniguruma {}, which is installed, is too old for {}",
                                path, pattern, onig_version(), fault.probe));
}

}  // namespace

struct Pattern::Compiled {
  ~Compiled() {
    onig_free_match_param(limits);
    onig_region_free(region, 1);
  }
  Regex regex{nullptr, onig_free};
  OnigRegion* region = nullptr;
  OnigMatchParam* limits = nullptr;
};

Pattern::Pattern(const SearchedText& searched, const std::string& path) : path_(path) {
  if (searched.text.empty())
    throw Failure(exit_failed, fmt::format("{}: expected a pattern, found none", path));
  if (!searched.is_pattern) {
    literal_ = searched.text;
    return;
  }
  compiled_ = std::make_unique<Compiled>();
  Compiled& c = *compiled_;
  OnigErrorInfo info{};
  if (const int code = compile(searched.text, c.regex, &info); code != ONIG_NORMAL)
    throw Failure(exit_failed,
                  fmt::format("{}: the pattern {}: {}", path, searched.text, message_of(code, &info)));
  refuse_faults(searched.text, path);
  c.region = onig_region_new();
  c.limits = onig_new_match_param();
  if (!c.region || !c.limits) throw std::bad_alloc();
  onig_initialize_match_param(c.limits);
  onig_set_retry_limit_in_match_of_match_param(c.limits, most_retries);
  onig_set_match_stack_limit_size_of_match_param(c.limits, most_places);
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;

std::optional<Match> Pattern::search(std::string_view text, size_t from) const {
  const auto refuse = [&](const std::string& why) {
    throw Failure(exit_failed, fmt::format("{}: its pattern cannot be matched: {}", path_, why));
  };
  // Oniguruma counts bytes with an int
  if (text.size() > INT_MAX)
    refuse(
        fmt::format("expected a text of at most {} bytes, found {}", grouped(INT_MAX), grouped(text.size())));
  const OnigUChar* const begin = as_bytes(text);
  const OnigUChar* const end = begin + text.size();
  OnigRegion* const region = compiled_->region;
  onig_set_retry_limit_in_search_of_match_param(compiled_->limits,
                                                most_retries_of_search + most_retries_per_byte * text.size());
  const int found = onig_search_with_param(compiled_->regex.get(), begin, end, begin + from, end, region,
                                           ONIG_OPTION_NONE, compiled_->limits);
  if (found == ONIG_MISMATCH) return std::nullopt;
  if (found == ONIGERR_MEMORY) throw std::bad_alloc();
  if (found < 0) refuse(message_of(found));
  const Match match{static_cast<size_t>(region->beg[0]), static_cast<size_t>(region->end[0])};
  // \K inside of a lookbehind can move the match before `from`, which would repeat the same match forever.
  if (match.begin < from) refuse("a match begins before where it is looked for");
  return match;
}

std::optional<Match> Pattern::find(std::string_view text, size_t from) const {
  if (!compiled_) {
    const size_t begin = text.find(literal_, from);
    return begin == std::string_view::npos ? std::nullopt
                                           : std::optional(Match{begin, begin + literal_.size()});
  }
  size_t end = from;  // end of the previous match, which may be empty
  while (from < text.size()) {
    const auto match = search(text, from);
    if (!match || match->end > match->begin) return match;
    // With \K an empty match may end after the position where the search began. The next search begins at its
    // end.
    from = match->end + (match->end != end          ? 0
                         : match->end < text.size() ? utf8_length(text.substr(match->end))
                                                    : 1);
    end = match->end;
  }
  return std::nullopt;
}

}  // namespace command
