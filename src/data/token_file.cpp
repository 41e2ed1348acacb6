#include "src/data/token_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

#include "planner/base/check_in.h"
#include "src/base/elementary.h"
#include "src/files/file_kind.h"

namespace stw {
namespace {

static_assert(std::endian::native == std::endian::little, "tokens are stored little-endian");

constexpr uint64_t chunk_bytes = 32768;  // read at once, on the stack
// Bytes of the file's start that are read to guess the type of its ids.
constexpr uint64_t inspected_bytes = uint64_t{1} << 18;
constexpr uint64_t fewest_ids = 16;  // fewer ids are not judged
constexpr uint64_t most_header = 65536;
constexpr std::string_view array_magic = "\x93NUMPY";

uint64_t token_bytes(TokenFormat format) {
  switch (format) {
    case TokenFormat::bytes: return 1;
    case TokenFormat::uint16: return 2;
    case TokenFormat::int64: return 8;
    default: return 4;
  }
}

const char* type_name(TokenFormat format) {
  switch (format) {
    case TokenFormat::bytes: return "uint8";
    case TokenFormat::uint16: return "uint16";
    case TokenFormat::int32: return "int32";
    case TokenFormat::int64: return "int64";
    default: return "uint32";
  }
}

// Statistics of the ids at a file's beginning, read as one type.
struct Reading {
  uint64_t ids = 0, outside = 0;              // outside: not in the vocabulary
  uint64_t even_zeros = 0, odd_zeros = 0;     // ids that are 0, at even and odd indices
  std::array<uint64_t, 256> low{}, second{};  // counts of the values of the lowest and the second byte

  bool is_every_second_zero(uint64_t zeros, uint64_t places, uint64_t others, uint64_t other_places) const {
    return ids >= fewest_ids && zeros == places && others < other_places;
  }
  bool is_odd_zero() const { return is_every_second_zero(odd_zeros, ids / 2, even_zeros, ids - ids / 2); }
  bool is_even_zero() const { return is_every_second_zero(even_zeros, ids - ids / 2, odd_zeros, ids / 2); }
};

Reading read_sample(std::span<const unsigned char> bytes, uint64_t width, bool is_big_endian,
                    int64_t vocabulary) {
  Reading r;
  for (uint64_t at = 0; at + width <= bytes.size(); at += width, ++r.ids) {
    uint64_t id = 0;
    for (uint64_t b = 0; b < width; ++b)
      id |= static_cast<uint64_t>(bytes[at + (is_big_endian ? width - 1 - b : b)]) << 8 * b;
    r.outside += id >= static_cast<uint64_t>(vocabulary);
    (r.ids % 2 == 0 ? r.even_zeros : r.odd_zeros) += id == 0;
    ++r.low[id & 255];
    ++r.second[id >> 8 & 255];
  }
  return r;
}

double bits_of(const std::array<uint64_t, 256>& counts, uint64_t all) {
  double bits = 0;
  for (const uint64_t count : counts)
    if (count > 0)
      bits -= static_cast<double>(count) / static_cast<double>(all) *
              portable_log(static_cast<double>(count) / static_cast<double>(all));
  return bits / portable_log(2.0);
}

// Whether 16-bit ids look byte-swapped. In the ids of a text the low byte has more entropy than the high one.
bool is_swapped(const Reading& r) {
  if (r.ids >= fewest_ids && r.low[0] == r.ids && r.even_zeros + r.odd_zeros < r.ids) return true;
  const double second = bits_of(r.second, r.ids);
  return r.ids >= 4096 && second >= 7 && second > bits_of(r.low, r.ids) + 0.4;
}

// Guesses the type of ids that do not look like numbers of `width` bytes. Empty: they do, or no type fits.
// Wider types are tried first: if all ids are in the vocabulary when read as a wide type, that is hardly by
// accident.
std::string other_type(std::span<const unsigned char> bytes, uint64_t width, int64_t vocabulary) {
  const Reading now = read_sample(bytes, width, false, vocabulary);
  if (now.ids < fewest_ids) return "";
  // If only a few ids are outside, the ids are wrong, and the type is right.
  const bool swapped = width == 2 && is_swapped(now), is_outside = now.outside * 4 > now.ids;
  if (!is_outside && !now.is_odd_zero() && !now.is_even_zero() && !swapped) return "";
  for (const uint64_t other : {uint64_t{8}, uint64_t{4}, uint64_t{2}}) {
    const Reading little = read_sample(bytes, other, false, vocabulary),
                  big = read_sample(bytes, other, true, vocabulary);
    const bool is_little =
        other != width && little.outside == 0 && !little.is_odd_zero() && !little.is_even_zero();
    const bool is_big = big.outside == 0 && !big.is_odd_zero() && !big.is_even_zero() &&
                        big.even_zeros + big.odd_zeros < big.ids;
    if (bytes.size() % other != 0 || little.ids == 0) continue;
    if (is_big && (!is_little || is_swapped(little)) && (other != width || is_outside || swapped))
      return "big-endian numbers of " + std::to_string(8 * other) + " bits";
    if (is_little) return other == 2 ? "uint16" : other == 4 ? "uint32" : "int64";
  }
  return "";
}

// The value of `key` in the header of an array, a Python dictionary, up to the header's end.
std::string_view value_of(std::string_view header, std::string_view key) {
  for (const char quote : {'\'', '"'}) {
    const size_t at = header.find(quote + std::string(key) + quote);
    if (at == std::string_view::npos) continue;
    const size_t colon = header.find(':', at + key.size() + 2);
    const size_t first = colon == std::string_view::npos ? colon : header.find_first_not_of(" ", colon + 1);
    if (first != std::string_view::npos) return header.substr(first);
  }
  return {};
}

std::optional<TokenFormat> format_of(std::string_view descr) {
  if (descr == "<u2") return TokenFormat::uint16;
  if (descr == "<u4") return TokenFormat::uint32;
  if (descr == "<i4") return TokenFormat::int32;
  // An id beyond int64 reads as negative, and is outside of any vocabulary.
  if (descr == "<i8" || descr == "<u8") return TokenFormat::int64;
  if (descr == "|u1") return TokenFormat::bytes;
  return std::nullopt;
}

}  // namespace

template <class Token>
Status TokenFile::read_as(uint64_t first, uint64_t count, int64_t vocabulary, int32_t* out,
                          Hash64* content) const {
  using Unsigned = std::make_unsigned_t<Token>;
  constexpr uint64_t most = chunk_bytes / sizeof(Token);
  Unsigned chunk[most];
  for (uint64_t done = 0; done < count;) {
    const uint64_t now = std::min(count - done, most);
    STW_TRY(file_.read(begin_ + (first + done) * sizeof(Token), chunk, now * sizeof(Token)));
    if (content) check_in(now * sizeof(Token)), content->update(chunk, now * sizeof(Token));
    // Finding the largest token of a chunk vectorises. As unsigned numbers, negative tokens are the largest.
    Unsigned largest = 0;
    for (uint64_t i = 0; i < now; ++i) largest = std::max(largest, chunk[i]);
    if (largest >= static_cast<uint64_t>(vocabulary)) {
      const auto at = static_cast<uint64_t>(
          std::find_if(chunk, chunk + now,
                       [&](Unsigned token) { return token >= static_cast<uint64_t>(vocabulary); }) -
          chunk);
      return corrupt(path(), "token " + std::to_string(first + done + at) + " is " +
                                 std::to_string(static_cast<Token>(chunk[at])) +
                                 ", expected less than the vocabulary of " + std::to_string(vocabulary));
    }
    if (out)
      out =
          std::transform(chunk, chunk + now, out, [](Unsigned token) { return static_cast<int32_t>(token); });
    done += now;
  }
  return ok();
}

Status TokenFile::read(uint64_t first, uint64_t count, int64_t vocabulary, int32_t* out,
                       Hash64* content) const {
  switch (format_) {
    case TokenFormat::bytes: return read_as<uint8_t>(first, count, vocabulary, out, content);
    case TokenFormat::uint16: return read_as<uint16_t>(first, count, vocabulary, out, content);
    case TokenFormat::int32: return read_as<int32_t>(first, count, vocabulary, out, content);
    case TokenFormat::int64: return read_as<int64_t>(first, count, vocabulary, out, content);
    default: return read_as<uint32_t>(first, count, vocabulary, out, content);
  }
}

// Finds the start of the ids in a NumPy file (.npy, versions 1 to 3).
Status TokenFile::find_array(TokenFormat requested) {
  char start[12] = {};
  if (file_.size() < sizeof start) return ok();
  STW_TRY(file_.read(0, start, sizeof start));
  if (std::string_view(start, array_magic.size()) != array_magic) return ok();
  const auto byte = [&](size_t i) { return static_cast<uint64_t>(static_cast<unsigned char>(start[i])); };
  const uint64_t version = byte(6),
                 length = version == 1 ? byte(8) | byte(9) << 8
                                       : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24,
                 front = version == 1 ? 10 : 12;
  if (version < 1 || version > 3)
    return corrupt(path(),
                   "a NumPy array of version " + std::to_string(version) + " of the format, expected 1 to 3");
  if (length > most_header || length > file_.size() - front)
    return corrupt(path(), "a NumPy array whose header ends outside of the file");
  std::string header(length, '\0');
  STW_TRY(file_.read(front, header.data(), length));
  std::string_view descr = value_of(header, "descr"), shape = value_of(header, "shape");
  descr = descr.empty() || (descr[0] != '\'' && descr[0] != '"')
              ? descr.substr(0, descr.find(", '"))
              : descr.substr(1, descr.find(descr[0], 1) - 1);
  const auto format = format_of(descr);
  if (!format)
    return corrupt(path(), "a NumPy array of type \"" + std::string(descr.substr(0, 40)) + "\"" +
                               (descr.starts_with('>') ? ", which is big-endian" : "") +
                               "; expected <u2, <u4, <i4 or <i8: save array.astype('<u4') instead");
  shape = shape.substr(0, shape.find(')') == std::string_view::npos ? 0 : shape.find(')') + 1);
  uint64_t count = 0;
  const char* const end = shape.data() + shape.size();
  const auto [stop, problem] = shape.size() < 3
                                   ? std::from_chars_result{shape.data(), std::errc::invalid_argument}
                                   : std::from_chars(shape.data() + 1, end, count);
  const std::string_view rest =
      problem == std::errc() ? std::string_view(stop, static_cast<size_t>(end - stop)) : "";
  if (rest != ",)" && rest != ", )")
    return corrupt(path(), "a NumPy array of the shape " + std::string(shape.substr(0, 60)) +
                               "; expected one dimension: save array.ravel() instead");
  if (requested != TokenFormat::ids && requested != TokenFormat::automatic && requested != *format)
    return Error{Code::bad_argument, path() + ": its header says that its ids are " + type_name(*format) +
                                         ", and token_type " + type_name(requested)};
  begin_ = front + length;
  const uint64_t bytes = file_.size() - begin_, width = token_bytes(*format);
  if (bytes / width != count || bytes % width != 0)
    return corrupt(path(), "a NumPy array of " + std::to_string(count) + " ids of " +
                               std::to_string(8 * width) + " bits, and " + std::to_string(bytes) +
                               " bytes follow its header");
  format_ = *format;
  has_header_ = true;
  return ok();
}

Status TokenFile::check_type(int64_t vocabulary, bool is_given) const {
  if (has_header_ || is_given || format_ == TokenFormat::bytes) return ok();
  std::vector<unsigned char> sample(std::min(file_.size(), inspected_bytes));
  STW_TRY(file_.read(0, sample.data(), sample.size()));
  const uint64_t width = token_bytes(format_);
  const std::string other = other_type(sample, width, vocabulary);
  if (other.empty()) return ok();
  const bool is_big_endian = other.starts_with("big");
  const std::string now = type_name(format_);
  return Error{Code::bad_argument,
               path() + ": its ids look like " + other + ", and are read as " + now +
                   (is_big_endian ? ": write them little-endian" : ": say so by token_type " + other) +
                   ", or if " + now + " is right, by token_type " + now};
}

Result<TokenFile> TokenFile::open(const std::string& path, TokenFormat format, int64_t vocabulary,
                                  Hash64& content) {
  const TokenFormat requested = format;
  const bool is_automatic = format == TokenFormat::automatic;
  if (is_automatic)
    format = path.ends_with(".bin") || path.ends_with(".npy") ? TokenFormat::ids : TokenFormat::bytes;
  const bool is_given = format != TokenFormat::ids;
  if (format == TokenFormat::ids) format = vocabulary > 65536 ? TokenFormat::uint32 : TokenFormat::uint16;
  STW_ASSIGN(file, File::open(path));
  if (file.size() == 0) return corrupt(path, "expected tokens, found an empty file");
  TokenFile source(std::move(file), format);
  if (format != TokenFormat::bytes) {
    if (const std::string kind = kind_of_download(source.file_); !kind.empty()) return corrupt(path, kind);
    STW_TRY(source.find_array(requested));
  }
  const uint64_t width = token_bytes(source.format_), bytes = source.file_.size() - source.begin_;
  STW_TRY(source.check_type(vocabulary, is_given));
  if (bytes % width != 0)
    return corrupt(path, "expected a multiple of " + std::to_string(width) + " bytes (" +
                             type_name(source.format_) + " tokens), found " + std::to_string(bytes));
  source.count_ = bytes / width;
  if (source.count_ == 0) return corrupt(path, "expected tokens, found an empty array");
  // The width goes into the hash: the same bytes read at another width are other tokens.
  if (const auto other = static_cast<uint8_t>(width);
      format != TokenFormat::bytes && width != (vocabulary > 65536 ? 4 : 2))
    content.update(&other, 1);
  STW_TRY(source.read(0, source.count_, vocabulary, nullptr, &content));
  return source;
}

}  // namespace stw
