#include "tokenizer/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include "base/failure.h"
#include "base/utf8.h"
#include "tokenizer/oniguruma.h"

namespace command {
namespace {

std::string message_of(int code) {
  PCRE2_UCHAR text[128] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// bytes, of the stack that compiled code uses for backtracking
constexpr size_t first_stack = 64 << 10, largest_stack = 8 << 20;

}  // namespace

struct Pattern::Compiled {
  ~Compiled() {
    pcre2_match_data_free(match);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
    pcre2_code_free(code);
  }
  pcre2_code* code = nullptr;
  pcre2_match_data* match = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_jit_stack* stack = nullptr;
};

Pattern::Pattern(const SearchedText& searched, const std::string& path) : path_(path) {
  if (searched.text.empty())
    throw Failure(exit_failed, fmt::format("{}: expected a pattern, found none", path));
  if (!searched.is_pattern) {
    literal_ = searched.text;
    return;
  }
  compiled_ = std::make_unique<Compiled>();
  int problem = 0;
  PCRE2_SIZE at = 0;
  Compiled& c = *compiled_;
  const std::string pattern = from_oniguruma(searched.text, path);
  const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> how(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (!how || pcre2_set_newline(how.get(), PCRE2_NEWLINE_LF) != 0) throw std::bad_alloc();
  // PCRE2 10.42 wrongly makes some quantifiers possessive: " ?[ab]?+\\W" finds nothing in " a".
  c.code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_POSSESS | PCRE2_NEVER_BACKSLASH_C,
                    &problem, &at, how.get());
  if (!c.code)
    throw Failure(exit_failed,
                  fmt::format("{}: the pattern {}: {}", path, searched.text, message_of(problem)));
  c.match = pcre2_match_data_create_from_pattern(c.code, nullptr);
  c.context = pcre2_match_context_create(nullptr);
  if (!c.match || !c.context) throw std::bad_alloc();
  // no JIT for this processor: the pattern is interpreted
  if (pcre2_jit_compile(c.code, PCRE2_JIT_COMPLETE) != 0) return;
  c.stack = pcre2_jit_stack_create(first_stack, largest_stack, nullptr);
  if (c.stack) pcre2_jit_stack_assign(c.context, nullptr, c.stack);
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;

std::optional<Match> Pattern::find(std::string_view text, size_t from) const {
  if (!compiled_) {
    const size_t begin = text.find(literal_, from);
    return begin == std::string_view::npos ? std::nullopt
                                           : std::optional(Match{begin, begin + literal_.size()});
  }
  size_t end = from;  // end of the previous match, which may be empty
  while (from < text.size()) {
    const int found = pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                  from, PCRE2_NO_UTF_CHECK, compiled_->match, compiled_->context);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      throw Failure(exit_failed,
                    fmt::format("{}: its pattern cannot be matched: {}", path_, message_of(found)));
    const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(compiled_->match);
    // \K inside of a lookbehind can move the match before `from`, which would repeat the same match forever.
    if (range[0] < from)
      throw Failure(
          exit_failed,
          fmt::format("{}: its pattern cannot be matched: a match begins before where it is looked for",
                      path_));
    if (range[1] > range[0]) return Match{range[0], range[1]};
    // With \K an empty match may end after the position where the search began. The next search begins at its
    // end.
    from = range[1] + (range[1] != end ? 0 : range[1] < text.size() ? utf8_length(text.substr(range[1])) : 1);
    end = range[1];
  }
  return std::nullopt;
}

}  // namespace command
