#include "tokenizer/normalization.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/unicode.h"

namespace command {
namespace {

utf8proc_option_t options_of(NormalStep::Kind form) {
  constexpr int composed = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
                decomposed = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
  switch (form) {
    case NormalStep::Kind::nfd: return static_cast<utf8proc_option_t>(decomposed);
    case NormalStep::Kind::nfkc: return static_cast<utf8proc_option_t>(composed | UTF8PROC_COMPAT);
    case NormalStep::Kind::nfkd: return static_cast<utf8proc_option_t>(decomposed | UTF8PROC_COMPAT);
    default: return static_cast<utf8proc_option_t>(composed);
  }
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// The length of the non-ASCII text at the beginning, up to the first character without normalization forms.
size_t length_with_form(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && !is_ascii(text[at])) {
    const Character c = first_character(text.substr(at));
    if (has_no_form(c.code)) break;
    at += c.bytes;
  }
  return at;
}

void append_in_form(std::string_view text, NormalStep::Kind form, std::string& out) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto* from = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const utf8proc_ssize_t length =
      utf8proc_map(from, static_cast<utf8proc_ssize_t>(text.size()), &mapped, options_of(form));
  if (length < 0) throw std::bad_alloc();  // the only possible error for UTF-8 text
  out.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(length));
  std::free(mapped);
}

// Normalization changes neither ASCII nor characters without forms. The last ASCII character before other
// text may be combined with it.
std::string in_form(std::string_view text, NormalStep::Kind form) {
  std::string out;
  while (!text.empty()) {
    size_t ascii = 0;
    while (ascii < text.size() && is_ascii(text[ascii])) ++ascii;
    const size_t formed = length_with_form(text.substr(ascii));
    const size_t plain = formed > 0 && ascii > 0 ? ascii - 1 : ascii;
    out += text.substr(0, plain);
    if (formed > 0) append_in_form(text.substr(plain, ascii - plain + formed), form, out);
    text.remove_prefix(ascii + formed);
    if (formed > 0 || text.empty()) continue;
    const size_t without_form = first_character(text).bytes;
    out += text.substr(0, without_form);
    text.remove_prefix(without_form);
  }
  return out;
}

std::string replaced(std::string_view text, const Pattern& pattern, std::string_view content, size_t most) {
  std::string out;
  size_t at = 0;
  while (const auto match = pattern.find(text, at)) {
    out += text.substr(at, match->begin - at);
    out += content;
    if (out.size() > most) throw TooMuchText();
    at = match->end;
  }
  return out += text.substr(at);
}

// Calls append(code, UTF-8 of the code, out) for every character and returns `out`.
template <class Append>
std::string each(std::string_view text, const Append& append) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c =
        is_ascii(text[0]) ? Character{static_cast<unsigned char>(text[0]), 1} : first_character(text);
    append(c.code, text.substr(0, c.bytes), out);
    text.remove_prefix(c.bytes);
  }
  return out;
}

std::string cleaned(std::string_view text) {
  return each(text, [](uint32_t code, std::string_view written, std::string& out) {
    if (code == '\t' || code == '\n' || code == '\r') out += ' ';
    else if (code != 0xFFFD && !is_control(code)) out += is_space(code) ? std::string_view(" ") : written;
  });
}

std::string with_spaces_around_ideographs(std::string_view text) {
  return each(text, [](uint32_t code, std::string_view written, std::string& out) {
    const bool is_one = is_ideograph(code);
    if (is_one) out += ' ';
    out += written;
    if (is_one) out += ' ';
  });
}

std::string without(std::string_view text, bool (*goes)(uint32_t)) {
  return each(text, [&](uint32_t code, std::string_view written, std::string& out) {
    if (!goes(code)) out += written;
  });
}

std::string lowercased(std::string_view text) {
  return each(text, [](uint32_t code, std::string_view, std::string& out) {
    constexpr uint32_t dotted_i = 0x130;  // its lowercase is an i and a combining dot
    if (code == dotted_i) out += "i\u0307";
    else append_utf8(out, lowercase_of(code));
  });
}

std::string stripped_left(std::string_view text) {
  for (Character c; !text.empty() && is_space((c = first_character(text)).code);) text.remove_prefix(c.bytes);
  return std::string(text);
}

std::string stripped_right(std::string_view text) {
  for (Character c; !text.empty() && is_space((c = last_character(text)).code);) text.remove_suffix(c.bytes);
  return std::string(text);
}

}  // namespace

Normalization::Normalization(const std::vector<NormalStep>& steps, const std::string& path) {
  for (const NormalStep& step : steps) {
    Step& added = steps_.emplace_back(Step{step, std::nullopt, std::nullopt});
    if (step.kind == NormalStep::Kind::replace) added.pattern.emplace(step.searched, path);
    if (step.kind == NormalStep::Kind::charsmap) added.charsmap.emplace(step.content, step.searched.text);
  }
}

// `text` is not empty.
std::string Normalization::carried_out(const Step& step, std::string text, size_t most) {
  using Kind = NormalStep::Kind;
  switch (step.step.kind) {
    case Kind::nfc:
    case Kind::nfd:
    case Kind::nfkc:
    case Kind::nfkd: return is_all_ascii(text) ? text : in_form(text, step.step.kind);
    case Kind::prepend: return text.insert(0, step.step.content);
    case Kind::replace: return replaced(text, *step.pattern, step.step.content, most);
    case Kind::strip_left: return stripped_left(text);
    case Kind::strip_right: return stripped_right(text);
    case Kind::lowercase: return lowercased(text);
    case Kind::drop_marks: return is_all_ascii(text) ? text : without(text, is_mark);
    case Kind::drop_nonspacing: return is_all_ascii(text) ? text : without(text, is_nonspacing);
    case Kind::clean: return cleaned(text);
    case Kind::spaces_around_ideographs:
      return is_all_ascii(text) ? text : with_spaces_around_ideographs(text);
    case Kind::charsmap: return (*step.charsmap)(text, most);
  }
  return text;
}

// Follows the offsets of Hugging Face's library. There a replacement counts as coming from the last
// character of the match. If a charsmap removes a character, the next one counts as coming from it.
size_t Normalization::of_first_after(const Step& step, const Normalized& before, size_t most) {
  const size_t bytes = before.of_first;
  if (bytes == 0 || step.step.kind == NormalStep::Kind::strip_right) return bytes;
  if (step.step.kind == NormalStep::Kind::replace) {
    const auto match = step.pattern->find(before.text, 0);
    if (!match || match->begin >= bytes) return bytes;
    return match->end > bytes ? match->begin : bytes - (match->end - match->begin) + step.step.content.size();
  }
  const size_t left = carried_out(step, before.text.substr(0, bytes), most).size();
  return step.step.kind == NormalStep::Kind::charsmap ? std::max<size_t>(left, 1) : left;
}

Normalized Normalization::operator()(std::string_view text) const {
  Normalized out{std::string(text), text.empty() ? 0 : first_character(text).bytes};
  const size_t most = longest_of(text);
  for (const Step& step : steps_) {
    if (out.text.empty()) break;
    if (out.text.size() > most) throw TooMuchText();
    out.of_first = of_first_after(step, out, most);
    out.text = carried_out(step, std::move(out.text), most);
  }
  return out;
}

}  // namespace command
