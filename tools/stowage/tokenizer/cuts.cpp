#include "tokenizer/cuts.h"

#include <algorithm>

#include "tokenizer/unicode.h"

namespace command {
namespace {

using Behavior = CutStep::Behavior;
using CutKind = CutStep::Kind;
using Prefix = CutStep::Prefix;

// Joins matches and the text between them into pieces. The input comes in order and without gaps.
class Pieces {
 public:
  Pieces(Behavior behavior, const std::function<void(Match)>& take) : behavior_(behavior), take_(take) {}

  void add(Match range, bool is_match) {
    if (range.begin == range.end) return;
    if (behavior_ == Behavior::removed) {
      if (!is_match) take_(range);
      return;
    }
    if (holds_ && joins(is_match)) held_.end = range.end;
    else {
      finish();
      held_ = range;
      holds_ = true;
    }
    was_match_ = is_match;
  }
  void finish() {
    if (holds_) take_(held_);
    holds_ = false;
  }

 private:
  // Whether the next part belongs to the pending piece.
  bool joins(bool is_match) const {
    switch (behavior_) {
      case Behavior::contiguous: return is_match == was_match_;
      case Behavior::merged_with_previous: return is_match && !was_match_;
      case Behavior::merged_with_next: return !is_match && was_match_;
      default: return false;
    }
  }

  const Behavior behavior_;
  const std::function<void(Match)>& take_;
  Match held_{};
  bool holds_ = false, was_match_ = false;
};

std::optional<Match> find_character(std::string_view text, size_t from, bool (*is_match)(uint32_t)) {
  for (size_t at = from; at < text.size();) {
    const Character c = first_character(text.substr(at));
    if (is_match(c.code)) return Match{at, at + c.bytes};
    at += c.bytes;
  }
  return std::nullopt;
}

// Calls back for runs of word characters and for runs of other characters that are not white space.
void for_words_and_signs(std::string_view text, const std::function<void(Match)>& take) {
  enum class Class { space, word, sign };
  size_t begin = 0;
  Class before = Class::space;
  const auto end_run = [&](size_t end) {
    if (before != Class::space && end > begin) take({begin, end});
    begin = end;
  };
  for (size_t at = 0; at < text.size();) {
    const Character c = first_character(text.substr(at));
    const Class here = is_of_word(c.code) ? Class::word : is_space(c.code) ? Class::space : Class::sign;
    if (here != before) end_run(at);
    before = here;
    at += c.bytes;
  }
  end_run(text.size());
}

template <class Find>
void for_pieces(std::string_view text, Behavior behavior, bool inverted, const Find& find,
                const std::function<void(Match)>& take) {
  Pieces pieces(behavior, take);
  size_t at = 0;
  while (const auto match = find(at)) {
    pieces.add({at, match->begin}, inverted);
    pieces.add(*match, !inverted);
    at = match->end;
  }
  pieces.add({at, text.size()}, inverted);
  pieces.finish();
}

// The origins of the bytes after with_marks().
std::vector<ByteOrigin> origins_with_marks(std::string_view text, std::span<const ByteOrigin> origins,
                                           const std::string& mark) {
  std::vector<ByteOrigin> out;
  for (size_t i = 0; i < origins.size(); ++i)
    out.insert(out.end(), text[i] == ' ' ? mark.size() : 1, origins[i]);
  return out;
}
// And after a prefix of `bytes` bytes.
std::vector<ByteOrigin> origins_with_prefix(std::span<const ByteOrigin> origins, size_t bytes) {
  if (origins.empty()) return {};
  std::vector<ByteOrigin> out(bytes, ByteOrigin{origins[0].begin, origins[0].begin});
  out.insert(out.end(), origins.begin(), origins.end());
  return out;
}

std::string with_marks(std::string_view text, const std::string& mark, size_t most) {
  std::string out;
  for (const char c : text) {
    c == ' ' ? out += mark : out += c;
    if (out.size() > most) throw TooMuchText();
  }
  return out;
}

}  // namespace

Cuts::Cuts(const std::vector<CutStep>& steps, const std::string& path) {
  for (const CutStep& step : steps) {
    steps_.push_back({step, std::nullopt});
    if (step.kind == CutKind::matches || step.kind == CutKind::words || !step.searched.text.empty())
      steps_.back().pattern.emplace(step.searched, path);
  }
}

void Cuts::cut(size_t number, const Piece& given, size_t of_first, size_t& left, const Take& take) const {
  std::string_view text = given.text;
  std::span<const ByteOrigin> origins = given.origins;
  if (text.empty()) return;
  if (text.size() > left) throw TooMuchText();
  left -= text.size();
  if (number == steps_.size()) return take({text, origins});
  const CutStep& step = steps_[number].step;
  const std::optional<Pattern>& pattern = steps_[number].pattern;
  std::string changed;  // owns the changed text that `text` then refers to
  std::vector<ByteOrigin> changed_origins;
  if (step.kind == CutKind::words) {
    origins = changed_origins = origins_with_marks(text, origins, step.searched.text);
    of_first = with_marks(text.substr(0, of_first), step.searched.text, left).size();
    text = changed = with_marks(text, step.searched.text, left);
  }
  const std::string_view prefix = step.kind == CutKind::words ? std::string_view(step.searched.text) : " ";
  if ((step.prefix == Prefix::always || (step.prefix == Prefix::first && of_first > 0)) &&
      !text.starts_with(prefix)) {
    origins = changed_origins = origins_with_prefix(origins, prefix.size());
    text = changed = std::string(prefix).append(text);
    of_first += of_first > 0 ? prefix.size() : 0;
  }

  const std::function<void(Match)> go_on = [&](Match piece) {
    const size_t bytes = piece.end - piece.begin;
    cut(number + 1,
        {text.substr(piece.begin, bytes), origins.empty() ? origins : origins.subspan(piece.begin, bytes)},
        of_first - std::min(of_first, piece.begin), left, take);
  };
  if (step.kind == CutKind::words_or_signs) return for_words_and_signs(text, go_on);
  const auto by_class = [&](bool (*is_match)(uint32_t)) {
    for_pieces(
        text, step.behavior, false, [&](size_t from) { return find_character(text, from, is_match); }, go_on);
  };
  if (step.kind == CutKind::digits) return by_class(is_numeric);
  if (step.kind == CutKind::spaces) return by_class(is_space);
  if (step.kind == CutKind::punctuation) return by_class(is_punctuation);
  const bool whole = !pattern || (step.kind == CutKind::words && step.behavior == Behavior::contiguous);
  if (whole) return go_on({0, text.size()});
  for_pieces(
      text, step.behavior, step.inverted, [&](size_t from) { return pattern->find(text, from); }, go_on);
}

}  // namespace command
