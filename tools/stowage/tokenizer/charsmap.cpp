#include "tokenizer/charsmap.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <utility>

#include "base/failure.h"
#include "base/utf8.h"
#include "tokenizer/unicode.h"

namespace command {
namespace {

// Hugging Face's library looks up longer clusters character by character.
constexpr size_t longest_cluster = 5;  // bytes

uint32_t number_at(std::string_view bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) number |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << 8 * i;
  return number;
}

// The fields of a unit of the double array (darts-clone).
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000FF; }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & 1u << 9) >> 6); }

// The bytes of the grapheme cluster that `text` begins with. `text` is not empty.
size_t cluster_length(std::string_view text) {
  utf8proc_int32_t state = 0;
  Character before = first_character(text);
  size_t length = before.bytes;
  while (length < text.size()) {
    const Character next = first_character(text.substr(length));
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before.code),
                                         static_cast<utf8proc_int32_t>(next.code), &state))
      break;
    length += next.bytes;
    before = next;
  }
  return length;
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, std::string place) : place_(std::move(place)) {
  if (bytes.size() < 4) fail();
  const size_t size = number_at(bytes, 0) / 4;
  bytes.remove_prefix(4);
  if (size == 0 || bytes.size() / 4 < size) fail();
  units_.reserve(size);
  for (size_t i = 0; i < size; ++i) units_.push_back(number_at(bytes, 4 * i));
  texts_ = bytes.substr(4 * size);
  if (valid_utf8(texts_) != texts_) fail();
}

void Charsmap::fail() const {
  throw Failure(exit_failed, fmt::format("{}: damaged, expected the rules of a SentencePiece model", place_));
}

uint32_t Charsmap::unit(uint32_t at) const {
  if (at >= units_.size()) fail();
  return units_[at];
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  uint32_t at = offset_of(unit(0));
  for (const char c : text) {
    const uint32_t byte = static_cast<unsigned char>(c);
    if (byte == 0) break;
    at ^= byte;
    const uint32_t here = unit(at);
    if (label_of(here) != byte) break;
    at ^= offset_of(here);
    if (!has_leaf(here)) continue;
    const size_t begin = value_of(unit(at));
    if (begin > texts_.size() || (begin < texts_.size() && stw::continues_utf8(texts_[begin]))) fail();
    return std::string_view(texts_).substr(begin, texts_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

void Charsmap::add_cluster(std::string_view cluster, std::string& out) const {
  if (cluster.size() <= longest_cluster) {
    if (const auto text = find(cluster)) {
      out += *text;
      return;
    }
  }
  while (!cluster.empty()) {
    const std::string_view character = cluster.substr(0, first_character(cluster).bytes);
    out += find(character).value_or(character);
    cluster.remove_prefix(character.size());
  }
}

std::string Charsmap::operator()(std::string_view text, size_t most) const {
  std::string out;
  while (!text.empty()) {
    const size_t length = cluster_length(text);
    add_cluster(text.substr(0, length), out);
    if (out.size() > most) throw TooMuchText();
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace command
