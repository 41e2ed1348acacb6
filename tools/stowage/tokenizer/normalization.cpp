#include "tokenizer/normalization.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
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

// Appends `count` origins, each from the first byte to the last one of these.
void append_joined(std::span<const ByteOrigin> origins, size_t count, std::vector<ByteOrigin>& out) {
  if (origins.empty()) return;
  out.insert(out.end(), count, ByteOrigin{origins.front().begin, origins.back().end});
}

size_t character_of(std::string_view text) { return first_character(text).bytes; }
// The length of a character and the marks that follow it; or of a run of white space; or of a Korean
// syllable in parts, which normalization puts together.
size_t cluster_of(std::string_view text) {
  const Character first = first_character(text);
  const auto joins = [&](uint32_t code) {
    constexpr uint32_t first_vowel = 0x1160, last_consonant = 0x11FF;
    if (is_space(first.code)) return is_space(code);
    return is_mark(code) || (code >= first_vowel && code <= last_consonant) || code == 0x200D ||
           code == 0xFF9E || code == 0xFF9F;
  };
  size_t at = first.bytes;
  for (Character c; at < text.size() && joins((c = first_character(text.substr(at))).code);) at += c.bytes;
  return at;
}
// The length of a word and the white space before it.
size_t word_of(std::string_view text) {
  size_t at = 0;
  Character c{};
  while (at < text.size() && is_space((c = first_character(text.substr(at))).code)) at += c.bytes;
  while (at < text.size() && !is_space((c = first_character(text.substr(at))).code)) at += c.bytes;
  return at;
}

}  // namespace

std::vector<ByteOrigin> Normalization::origins_after(const Step& step, std::string_view before,
                                                     std::string_view after,
                                                     std::span<const ByteOrigin> origins, size_t most) {
  using Kind = NormalStep::Kind;
  std::vector<ByteOrigin> out;
  const Kind kind = step.step.kind;
  if (kind == Kind::strip_left || kind == Kind::strip_right) {
    const auto kept = kind == Kind::strip_left ? origins.last(after.size()) : origins.first(after.size());
    return {kept.begin(), kept.end()};
  }
  if (kind == Kind::prepend) {
    out.assign(step.step.content.size(), ByteOrigin{origins[0].begin, origins[0].begin});
    out.insert(out.end(), origins.begin(), origins.end());
    return out;
  }
  if (kind == Kind::replace) {
    size_t at = 0;
    while (const auto match = step.pattern->find(before, at)) {
      const auto kept = origins.subspan(at, match->begin - at);
      out.insert(out.end(), kept.begin(), kept.end());
      append_joined(origins.subspan(match->begin, match->end - match->begin), step.step.content.size(), out);
      at = match->end;
    }
    const auto rest = origins.subspan(at);
    out.insert(out.end(), rest.begin(), rest.end());
    out.resize(after.size());  // an empty match has no origin
    return out;
  }
  add_parts(step, before, after, origins, most, 0, out);
  return out;
}

// Runs the step on each part of the text, which has the same result as long as no step looks beyond a part.
// If not, all bytes of the text have one origin. `level`: of parts_of, from long parts to short ones.
void Normalization::add_parts(const Step& step, std::string_view before, std::string_view after,
                              std::span<const ByteOrigin> origins, size_t most, size_t level,
                              std::vector<ByteOrigin>& out) {
  constexpr size_t (*parts_of[])(std::string_view) = {word_of, cluster_of, character_of};
  if (level == std::size(parts_of)) return append_joined(origins, after.size(), out);
  struct Part {
    size_t at, bytes;
    std::string after;
  };
  std::vector<Part> parts;
  std::string all;
  for (size_t at = 0, bytes; at < before.size(); at += bytes) {
    bytes = parts_of[level](before.substr(at));
    parts.push_back({at, bytes, carried_out(step, std::string(before.substr(at, bytes)), most)});
    all += parts.back().after;
  }
  if (all != after) return append_joined(origins, after.size(), out);
  const bool drops_marks =
      step.step.kind == NormalStep::Kind::drop_marks || step.step.kind == NormalStep::Kind::drop_nonspacing;
  const size_t first = out.size();
  for (const Part& part : parts) {
    add_parts(step, before.substr(part.at, part.bytes), part.after, origins.subspan(part.at, part.bytes),
              most, level + 1, out);
    // A mark that goes belongs to the character before it.
    const std::string_view kept = std::string_view(after).substr(0, out.size() - first);
    if (!part.after.empty() || !drops_marks || kept.empty()) continue;
    for (size_t i = out.size() - last_character(kept).bytes; i < out.size(); ++i)
      out[i].end = std::max(out[i].end, origins[part.at + part.bytes - 1].end);
  }
}

std::vector<ByteOrigin> Normalization::origins(std::string_view text) const {
  std::vector<ByteOrigin> out;
  for (size_t at = 0, bytes; at < text.size(); at += bytes) {
    bytes = first_character(text.substr(at)).bytes;
    out.insert(out.end(), bytes, ByteOrigin{static_cast<uint32_t>(at), static_cast<uint32_t>(at + bytes)});
  }
  std::string now(text);
  const size_t most = longest_of(text);
  for (const Step& step : steps_) {
    if (now.empty()) break;
    std::string next = carried_out(step, now, most);
    out = origins_after(step, now, next, out, most);
    now = std::move(next);
  }
  return out;
}

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
