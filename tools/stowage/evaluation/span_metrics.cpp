#include "evaluation/span_metrics.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/unicode.h"

namespace command {

namespace {

// As Python's str.split does.
bool separates(uint32_t code) { return is_space(code) || (code >= 0x1C && code <= 0x1F); }
// string.punctuation of Python.
bool is_sign(uint32_t code) { return code < 0x80 && is_punctuation(code); }
// The \w of Python's re.
bool is_in_word(uint32_t code) {
  return code == '_' || is_numeric(code) || (is_of_word(code) && !is_mark(code) && !is_punctuation(code));
}

std::vector<uint32_t> characters_of(std::string_view text) {
  std::vector<uint32_t> codes;
  while (!text.empty()) {
    const Character c = first_character(text);
    codes.push_back(c.code);
    text.remove_prefix(c.bytes);
  }
  return codes;
}

// As Python's str.lower does. A sigma at the end of a word has a form of its own.
std::vector<uint32_t> lowercase(const std::vector<uint32_t>& codes) {
  constexpr uint32_t sigma = 0x3A3, small_sigma = 0x3C3, last_sigma = 0x3C2, dotted_i = 0x130, dot = 0x307;
  std::vector<uint32_t> out;
  const auto is_letter = [&](size_t i) {
    return i < codes.size() && is_of_word(codes[i]) && !is_numeric(codes[i]) && codes[i] != '_';
  };
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == dotted_i) out.insert(out.end(), {'i', dot});
    else if (codes[i] == sigma)
      out.push_back(i > 0 && is_letter(i - 1) && !is_letter(i + 1) ? last_sigma : small_sigma);
    else out.push_back(lowercase_of(codes[i]));
  }
  return out;
}

// Removes a, an and the where they are words: a space takes their place.
std::vector<uint32_t> without_articles(const std::vector<uint32_t>& codes) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < codes.size();) {
    size_t end = i;
    while (end < codes.size() && is_in_word(codes[end])) ++end;
    if (end == i) {
      out.push_back(codes[i++]);
      continue;
    }
    const std::u32string word(codes.begin() + static_cast<std::ptrdiff_t>(i),
                              codes.begin() + static_cast<std::ptrdiff_t>(end));
    if (word == U"a" || word == U"an" || word == U"the") out.push_back(' ');
    else out.insert(out.end(), word.begin(), word.end());
    i = end;
  }
  return out;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool is_open = false;
  std::vector<uint32_t> codes = lowercase(characters_of(text));
  std::erase_if(codes, is_sign);
  for (const uint32_t code : without_articles(codes)) {
    if (separates(code)) {
      is_open = false;
      continue;
    }
    if (!is_open) words.emplace_back();
    is_open = true;
    append_utf8(words.back(), code);
  }
  return words;
}

double f1_of(const std::vector<std::string>& gold, const std::vector<std::string>& found, bool may_be_none) {
  if (may_be_none && (gold.empty() || found.empty())) return gold == found;
  std::map<std::string_view, int64_t> left;
  for (const std::string& word : gold) ++left[word];
  double same = 0;
  for (const std::string& word : found)
    if (const auto one = left.find(word); one != left.end() && one->second-- > 0) ++same;
  if (same == 0) return 0;
  const double precision = same / static_cast<double>(found.size()),
               recall = same / static_cast<double>(gold.size());
  return 2 * precision * recall / (precision + recall);
}

}  // namespace

std::string normalized_answer(std::string_view text) {
  std::string all;
  for (const std::string& word : words_of(text)) all += (all.empty() ? "" : " ") + word;
  return all;
}

void SpanCounts::add(std::span<const std::string> gold, std::string_view found) {
  std::vector<std::vector<std::string>> known;
  for (const std::string& answer : gold) {
    known.push_back(words_of(answer));
    if (may_be_none_ && known.back().empty()) known.pop_back();
  }
  if (known.empty()) known.emplace_back();
  const std::vector<std::string> words = words_of(found);
  double exact = 0, f1 = 0;
  for (const std::vector<std::string>& answer : known) {
    exact = std::max<double>(exact, answer == words);
    f1 = std::max(f1, f1_of(answer, words, may_be_none_));
  }
  for (SpanMetrics::Group* group : {&sums_.all, gold.empty() ? &sums_.without_answer : &sums_.with_answer}) {
    group->exact += exact, group->f1 += f1;
    ++group->count;
  }
}

SpanMetrics SpanCounts::metrics() const {
  SpanMetrics metrics = sums_;
  for (SpanMetrics::Group* group : {&metrics.all, &metrics.with_answer, &metrics.without_answer})
    if (group->count > 0) {
      group->exact *= 100 / static_cast<double>(group->count);
      group->f1 *= 100 / static_cast<double>(group->count);
    }
  return metrics;
}

}  // namespace command
