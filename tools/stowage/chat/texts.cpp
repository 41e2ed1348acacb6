#include "texts.h"

#include <utf8proc.h>

#include <algorithm>
#include <set>

#include "../tokenizer/unicode.h"
#include "../utf8.h"

namespace command::chat {
namespace {

std::string with_characters(const std::string& text, int32_t (*of)(int32_t)) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const Character c = first_character(std::string_view(text).substr(at));
    append_utf8(result, static_cast<uint32_t>(of(static_cast<int32_t>(c.code))));
    at += c.bytes;
  }
  return result;
}

// While a list is made, as check_length is asked while a text is.
void add_part(List& parts, std::string part) {
  if (parts.size() >= longest_list) throw TemplateError("a list is too long");
  parts.push_back(std::move(part));
}

// As Python's strip has it.
bool is_white(uint32_t code) { return is_space(code) || (code >= 0x1c && code <= 0x1f); }

template <class IsStripped>
std::string_view stripped_of(std::string_view text, const IsStripped& is_stripped, bool at_begin, bool at_end) {
  while (at_begin && !text.empty()) {
    const Character c = first_character(text);
    if (!is_stripped(c.code)) break;
    text.remove_prefix(c.bytes);
  }
  while (at_end && !text.empty()) {
    const Character c = last_character(text);
    if (!is_stripped(c.code)) break;
    text.remove_suffix(c.bytes);
  }
  return text;
}

}  // namespace

bool is_letter(uint32_t code) {
  const auto category = utf8proc_category(static_cast<int32_t>(code));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LT;
}

std::string upper(const std::string& text) { return with_characters(text, utf8proc_toupper); }
std::string lower(const std::string& text) { return with_characters(text, utf8proc_tolower); }
std::string capitalize(const std::string& text) {
  const std::vector<size_t> at = characters(text);
  return at.size() < 2 ? text : upper(text.substr(0, at[1])) + lower(text.substr(at[1]));
}
std::string title(const std::string& text, bool (*is_between)(uint32_t)) {
  std::string result;
  bool begins = true;
  for (size_t at = 0; at < text.size();) {
    const Character c = first_character(std::string_view(text).substr(at));
    append_utf8(result, static_cast<uint32_t>(begins ? utf8proc_totitle(static_cast<int32_t>(c.code)) : utf8proc_tolower(static_cast<int32_t>(c.code))));
    begins = is_between(c.code);
    at += c.bytes;
  }
  return result;
}
std::string stripped(std::string_view text, const std::optional<std::string>& given, bool at_begin, bool at_end) {
  if (!given) return std::string(stripped_of(text, is_white, at_begin, at_end));
  std::set<uint32_t> codes;
  for (std::string_view rest = *given; !rest.empty();) {
    const Character c = first_character(rest);
    codes.insert(c.code);
    rest.remove_prefix(c.bytes);
  }
  return std::string(stripped_of(text, [&](uint32_t code) { return codes.contains(code); }, at_begin, at_end));
}
List split(const std::string& text, const std::optional<std::string>& by, int64_t most) {
  List parts;
  most = most < 0 ? INT64_MAX : most;
  if (by && by->empty()) throw TemplateError("split by nothing");
  if (by) {
    size_t at = 0;
    for (size_t next; most != 0 && (next = text.find(*by, at)) != std::string::npos; at = next + by->size(), --most) add_part(parts, text.substr(at, next - at));
    add_part(parts, text.substr(at));
    return parts;
  }
  std::string_view rest = stripped_of(text, is_white, true, false);   // by white space, of which any amount is one
  while (!rest.empty()) {
    if (most-- == 0) {
      add_part(parts, std::string(stripped_of(rest, is_white, false, true)));
      break;
    }
    size_t end = 0;
    while (end < rest.size()) {
      const Character c = first_character(rest.substr(end));
      if (is_white(c.code)) break;
      end += c.bytes;
    }
    add_part(parts, std::string(rest.substr(0, end)));
    rest = stripped_of(rest.substr(end), is_white, true, false);
  }
  return parts;
}
List split_from_end(const std::string& text, const std::optional<std::string>& by, int64_t most) {
  if (!by) throw TemplateError("rsplit needs what to split by");
  most = most < 0 ? INT64_MAX : most;
  if (by->empty()) throw TemplateError("split by nothing");
  List parts;
  size_t end = text.size();
  for (size_t next; most != 0 && end >= by->size() && (next = text.rfind(*by, end - by->size())) != std::string::npos; end = next, --most)
    add_part(parts, text.substr(next + by->size(), end - next - by->size()));
  add_part(parts, text.substr(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}
List lines_of(const std::string& text) {
  List lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of("\n\r", at), text.size());
    add_part(lines, text.substr(at, end - at));
    at = end + (text.compare(end, 2, "\r\n") == 0 ? 2 : 1);
  }
  return lines;
}
std::string replaced(const std::string& text, const std::string& from, const std::string& to, int64_t most) {
  std::string result;
  size_t at = 0;
  if (from.empty()) throw TemplateError("replace needs what to replace");
  most = most < 0 ? INT64_MAX : most;
  for (size_t next; most != 0 && (next = text.find(from, at)) != std::string::npos; at = next + from.size(), --most) check_length((result += text.substr(at, next - at)) += to);
  return result + text.substr(at);
}
int64_t count_of(const std::string& part, const std::string& text) {
  if (part.empty()) throw TemplateError("count needs what to count");
  int64_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}
std::string joined(const List& list, const std::string& by) {
  std::string text;
  for (size_t i = 0; i < list.size(); ++i) check_length((text += i > 0 ? by : "") += list[i].str());
  return text;
}
bool any_affix(const std::string& text, const Value& affix, bool at_begin) {
  const auto has = [&](const Value& v) { return at_begin ? text.starts_with(v.text()) : text.ends_with(v.text()); };
  return affix.is(Value::Kind::list) ? std::any_of(affix.list().begin(), affix.list().end(), has) : has(affix);
}
std::string indented(const std::string& text, const std::string& by, bool first, bool blank) {
  std::string result;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const bool indents = at == 0 ? first : blank || end > at;
    check_length(((result += at > 0 ? "\n" : "") += indents ? by : "").append(text, at, end - at));
    at = end + 1;
  }
  return result;
}

}  // namespace command::chat
