#include "planner/picture/text.h"

#include "planner/base/figures.h"
#include "planner/base/json.h"
#include "planner/base/utf8.h"

namespace stw::picture {

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(sequence.size());
    const char c = sequence[0];
    if (length == 0 || sequence == "\xEF\xBF\xBE" || sequence == "\xEF\xBF\xBF") out += replacement_character;
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else if (c == '\'') out += "&#39;";
    else if (c == '\n' || c == '\t' || c == '\r') out += ' ';
    else if (length == 1 && static_cast<unsigned char>(c) < 0x20) out += replacement_character;
    else out += sequence;
  }
  return out;
}

std::string quoted(std::string_view text) {
  std::string out;
  for (const char c : to_string(Json(text), 0))
    if (c == '<') out += "\\u003c";
    else if (c == '>') out += "\\u003e";
    else out += c;
  return out;
}

std::string number(double value, int decimals) {
  std::string text = fixed_point(value, decimals);
  if (text.find('.') == std::string::npos) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string whole(double value) {
  return grouped(value > 0 && value < 9e18 ? static_cast<uint64_t>(value + 0.5) : 0);
}

}  // namespace stw::picture
