#include "chat/texts.h"

#include <algorithm>
#include <set>

#include "base/utf8.h"
#include "tokenizer/unicode.h"

namespace command::chat {
namespace {

// Limits the length of a list while it grows, as check_length does for a text.
void add_part(List& parts, std::string part) {
  if (parts.size() >= longest_list) throw TemplateError("a list is too long");
  parts.push_back(std::move(part));
}

template <class IsStripped>
std::string_view stripped_of(std::string_view text, const IsStripped& is_stripped, bool at_begin,
                             bool at_end) {
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

bool is_white(uint32_t code) { return is_space(code) || (code >= 0x1c && code <= 0x1f); }

std::string stripped(std::string_view text, const std::optional<std::string>& given, bool at_begin,
                     bool at_end) {
  if (!given) return std::string(stripped_of(text, is_white, at_begin, at_end));
  std::set<uint32_t> codes;
  for (std::string_view rest = *given; !rest.empty();) {
    const Character c = first_character(rest);
    codes.insert(c.code);
    rest.remove_prefix(c.bytes);
  }
  return std::string(stripped_of(
      text, [&](uint32_t code) { return codes.contains(code); }, at_begin, at_end));
}
List split(const std::string& text, const std::optional<std::string>& by, int64_t most) {
  List parts;
  most = most < 0 ? INT64_MAX : most;
  if (by && by->empty()) throw TemplateError("split by an empty text");
  if (by) {
    size_t at = 0;
    for (size_t next; most != 0 && (next = text.find(*by, at)) != std::string::npos;
         at = next + by->size(), --most)
      add_part(parts, text.substr(at, next - at));
    add_part(parts, text.substr(at));
    return parts;
  }
  std::string_view rest = stripped_of(text, is_white, true, false);  // splits at runs of white space
  while (!rest.empty()) {
    if (most-- == 0) {
      add_part(parts, std::string(rest));
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
  if (!by) throw TemplateError("rsplit needs a separator");
  most = most < 0 ? INT64_MAX : most;
  if (by->empty()) throw TemplateError("split by an empty text");
  List parts;
  size_t end = text.size();
  for (size_t next;
       most != 0 && end >= by->size() && (next = text.rfind(*by, end - by->size())) != std::string::npos;
       end = next, --most)
    add_part(parts, text.substr(next + by->size(), end - next - by->size()));
  add_part(parts, text.substr(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}
List lines_of(const std::string& text, bool keeps_ends) {
  const auto ends_line = [](uint32_t code) {
    return (code >= '\n' && code <= '\r') || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
           code == 0x2028 || code == 0x2029;
  };
  List lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const Character c = first_character(std::string_view(text).substr(at));
    const size_t end = at;
    at += text.compare(at, 2, "\r\n") == 0 ? 2 : c.bytes;
    if (!ends_line(c.code)) continue;
    add_part(lines, text.substr(begin, (keeps_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) add_part(lines, text.substr(begin));
  return lines;
}
std::string replaced(const std::string& text, const std::string& from, const std::string& to, int64_t most) {
  std::string result;
  size_t at = 0;
  if (from.empty()) throw TemplateError("replace needs a text to replace");
  most = most < 0 ? INT64_MAX : most;
  for (size_t next; most != 0 && (next = text.find(from, at)) != std::string::npos;
       at = next + from.size(), --most)
    check_length((result += text.substr(at, next - at)) += to);
  return result + text.substr(at);
}
int64_t count_of(const std::string& part, const std::string& text) {
  if (part.empty()) throw TemplateError("count needs a text to count");
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
  const auto has = [&](const Value& v) {
    return at_begin ? text.starts_with(v.text()) : text.ends_with(v.text());
  };
  if (affix.is(Value::Kind::list) && !affix.is_tuple())
    throw TemplateError("expected a string or a tuple of strings, found a list");
  return affix.is(Value::Kind::list) ? std::any_of(affix.list().begin(), affix.list().end(), has)
                                     : has(affix);
}
std::string indented(const std::string& text, const std::string& by, bool first, bool blank) {
  std::string result;
  bool is_first = true;
  for (const Value& line : lines_of(text + "\n")) {
    const bool indents = is_first ? first : blank || !line.text().empty();
    check_length(((result += is_first ? "" : "\n") += indents ? by : "") += line.text());
    is_first = false;
  }
  return result;
}

}  // namespace command::chat
