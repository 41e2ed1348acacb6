#include "normalization.h"

#include <utf8proc.h>

#include <cstdlib>
#include <new>

#include "unicode.h"

namespace command {
namespace {

utf8proc_option_t options_of(NormalStep::Kind form) {
  constexpr int composed = UTF8PROC_STABLE | UTF8PROC_COMPOSE, decomposed = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
  switch (form) {
    case NormalStep::Kind::nfd: return static_cast<utf8proc_option_t>(decomposed);
    case NormalStep::Kind::nfkc: return static_cast<utf8proc_option_t>(composed | UTF8PROC_COMPAT);
    case NormalStep::Kind::nfkd: return static_cast<utf8proc_option_t>(decomposed | UTF8PROC_COMPAT);
    default: return static_cast<utf8proc_option_t>(composed);
  }
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// ASCII is as it is in every form, but the last character of a run may be combined with what follows.
std::string in_form(std::string_view text, NormalStep::Kind form) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_ascii(text[end])) ++end;
    const size_t plain = end == text.size() || end == at ? end : end - 1;
    out += text.substr(at, plain - at);
    at = plain;
    while (end < text.size() && !is_ascii(text[end])) ++end;
    if (at == end) continue;
    utf8proc_uint8_t* mapped = nullptr;
    const auto* from = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
    const utf8proc_ssize_t length = utf8proc_map(from, static_cast<utf8proc_ssize_t>(end - at), &mapped, options_of(form));
    if (length < 0) throw std::bad_alloc();   // of its errors the only one, for text that is UTF-8
    out.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(length));
    std::free(mapped);
    at = end;
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

}  // namespace

Normalization::Normalization(const std::vector<NormalStep>& steps, const std::string& path) {
  for (const NormalStep& step : steps) {
    steps_.push_back({step, std::nullopt});
    if (step.kind == NormalStep::Kind::replace) steps_.back().pattern.emplace(step.searched, path);
  }
}

std::string Normalization::operator()(std::string_view text) const {
  std::string out(text);
  const size_t most = longest_of(text);
  for (const auto& [step, pattern] : steps_) {
    if (out.size() > most) throw TooMuchText();
    if (step.kind == NormalStep::Kind::replace) out = replaced(out, *pattern, step.content, most);
    else if (step.kind != NormalStep::Kind::prepend) out = in_form(out, step.kind);
    else if (!out.empty()) out.insert(0, step.content);
  }
  return out;
}

}  // namespace command
