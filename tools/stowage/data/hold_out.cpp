#include "data/hold_out.h"

#include <fmt/format.h>
#include <stowage.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/failure.h"
#include "base/files.h"
#include "base/messages.h"
#include "base/units.h"
#include "base/utf8.h"
#include "data/question_texts.h"

namespace command {

std::vector<size_t> keeping_labels(std::span<const size_t> tokens, const LabelLists& labels) {
  std::set<uint32_t> seen;
  std::vector<bool> is_first(labels.size());  // the first text of a label
  for (size_t i = 0; i < labels.size(); ++i)
    for (const uint32_t label : labels[i])
      if (seen.insert(label).second) is_first[i] = true;
  // A fifth is more than the held-out tenth with the text at its border.
  const size_t enough = std::accumulate(tokens.begin(), tokens.end(), size_t{0}) / 5;
  size_t others = 0, count = 0;
  std::vector<bool> goes_ahead(labels.size());
  for (size_t i = labels.size(); i-- > 0 && (others < enough || count < 2);) {
    goes_ahead[i] = is_first[i];
    if (!is_first[i]) others += tokens[i], ++count;
  }
  std::vector<size_t> order(labels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_partition(order.begin(), order.end(), [&](size_t i) { return goes_ahead[i]; });
  return order;
}

void warn_of_unlearned_labels(const Examples& examples, uint64_t first_held_out,
                              std::span<const std::string> labels, uint32_t task, const std::string& path) {
  if (task == STW_TASK_NUMBER) return;
  std::vector<bool> is_there(labels.size());
  size_t document = 0;
  for (size_t token = 0; token < first_held_out; ++token) {
    const bool begins = (examples.marks[token] & STW_MARK_BEGIN) != 0;
    const size_t at = task == STW_TASK_TOKEN_LABEL ? token : document;
    document += begins;
    if (task == STW_TASK_LABELS && begins) {
      for (const uint32_t label : examples.lists[at]) is_there[label] = true;
    } else if (task == STW_TASK_TOKEN_LABEL || begins) {
      uint32_t label = 0;
      std::memcpy(&label, examples.labels.data() + at * sizeof label, sizeof label);
      if (label < labels.size()) is_there[label] = true;
    }
  }
  const auto missing = std::find(is_there.begin(), is_there.end(), false);
  if (missing == is_there.end()) return;
  const auto count = static_cast<uint64_t>(std::count(is_there.begin(), is_there.end(), false));
  complain(
      "stowage: warning: {}: {} of its labels, such as \"{}\", {} in no text that is trained on, and the "
      "model "
      "does not learn {}{}",
      path, grouped(count), shortened(labels[static_cast<size_t>(missing - is_there.begin())]),
      count == 1 ? "is" : "are", count == 1 ? "it" : "them",
      first_held_out < examples.tokens.size() ? "; --eval-batches 0 trains on all texts" : "");
}

namespace {

struct Text {
  size_t first, end;                    // tokens
  size_t first_document, end_document;  // all documents of the text
};

std::vector<Text> texts_of(const Examples& examples, const DocumentLayout& layout) {
  std::vector<Text> texts;
  size_t documents = 0;
  for (size_t token = 0; token < examples.marks.size(); ++token) {
    if (!(examples.marks[token] & STW_MARK_BEGIN)) continue;
    if (documents % 2 == 0 || !layout.of_pairs) {
      if (!texts.empty()) texts.back().end = token, texts.back().end_document = documents;
      texts.push_back({token, examples.marks.size(), documents, documents + 1});
    }
    ++documents;
  }
  if (!texts.empty()) texts.back().end_document = documents;
  return texts;
}

// The number of the question that the text's first document belongs to.
size_t question_of(const Examples& examples, const Text& text) {
  return examples.questions->texts[examples.origins[text.first_document].number - 1].question;
}

// The units of holding out: texts, or questions with all their texts.
std::vector<Text> units_of(const Examples& examples, const DocumentLayout& layout) {
  std::vector<Text> texts = texts_of(examples, layout);
  if (!examples.questions) return texts;
  std::vector<Text> questions;
  for (const Text& text : texts) {
    if (!questions.empty() && question_of(examples, questions.back()) == question_of(examples, text))
      questions.back().end = text.end, questions.back().end_document = text.end_document;
    else questions.push_back(text);
  }
  return questions;
}

uint64_t checksum(const Examples& examples, const Text& text) {
  if (examples.questions) {  // however its context is cut into texts
    const Question& question = examples.questions->questions[question_of(examples, text)];
    return hash_of(question.text + '\0' + *question.context);
  }
  const std::string_view bytes(reinterpret_cast<const char*>(examples.tokens.data() + text.first),
                               (text.end - text.first) * sizeof examples.tokens[0]);
  return hash_of(bytes);
}

// The same texts in another order.
Examples in_order(const Examples& examples, const DocumentLayout& layout, const std::vector<Text>& texts) {
  Examples all;
  all.counts = examples.counts;
  all.reading = examples.reading;
  all.questions = examples.questions;
  const size_t units = layout.has_labels_of_words ? examples.tokens.size() : examples.origins.size();
  const size_t label_bytes = units == 0 ? 0 : examples.labels.size() / units;
  for (const Text& text : texts) {
    const auto part = [](auto& to, const auto& from, size_t first, size_t end) {
      to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(first),
                from.begin() + static_cast<std::ptrdiff_t>(end));
    };
    part(all.tokens, examples.tokens, text.first, text.end);
    part(all.marks, examples.marks, text.first, text.end);
    part(all.origins, examples.origins, text.first_document, text.end_document);
    for (size_t i = text.first_document; i < text.end_document && !examples.lists.empty(); ++i)
      all.lists.add(examples.lists[i]);
    const size_t first = layout.has_labels_of_words ? text.first : text.first_document,
                 end = layout.has_labels_of_words ? text.end : text.end_document;
    part(all.labels, examples.labels, first * label_bytes, end * label_bytes);
  }
  return all;
}

}  // namespace

HeldOutTexts held_out_texts(const Examples& examples, const DocumentLayout& layout, uint64_t first_held_out) {
  HeldOutTexts held_out;
  for (const Text& text : units_of(examples, layout))
    if (text.first >= first_held_out) held_out.push_back(checksum(examples, text));
  std::sort(held_out.begin(), held_out.end());
  return held_out;
}

std::optional<HeldOutAgain> hold_out_again(Examples& examples, const DocumentLayout& layout,
                                           const HeldOutTexts& before, uint64_t window) {
  std::map<uint64_t, size_t> times;
  for (const uint64_t text : before) ++times[text];
  const std::vector<Text> texts = units_of(examples, layout);
  std::vector<Text> trained, held_out;
  uint64_t all = 0, tokens = 0;
  for (const Text& text : texts) {
    const uint64_t tokens_of_text = text.end - text.first,
                   length = examples.questions ? tokens_of_text : std::min(tokens_of_text, window);
    const auto found = times.find(checksum(examples, text));
    const bool is_held_out = found != times.end() && found->second > 0;
    if (is_held_out) --found->second, tokens += length;
    all += length;
    (is_held_out ? held_out : trained).push_back(text);
  }
  if (held_out.empty() || trained.empty()) return std::nullopt;
  const uint64_t count = held_out.size();
  trained.insert(trained.end(), held_out.begin(), held_out.end());
  examples = in_order(examples, layout, trained);
  // The library rounds share · all down.
  return HeldOutAgain{count, (static_cast<double>(tokens) + 0.5) / static_cast<double>(all)};
}

std::string held_out_file(const HeldOutTexts& texts) {
  std::string lines;
  for (const uint64_t text : texts) lines += fmt::format("{:016x}\n", text);
  return lines;
}

HeldOutTexts read_held_out(std::string_view text, const std::string& path) {
  HeldOutTexts texts;
  for (size_t at = 0; at < text.size(); at += 17) {
    uint64_t number = 0;
    const std::string_view line = text.substr(at, 17);
    const auto read = std::from_chars(line.data(), line.data() + line.size(), number, 16);
    if (line.size() != 17 || read.ec != std::errc() || read.ptr != line.data() + 16 || line[16] != '\n')
      throw Failure(exit_failed, fmt::format("{}:{}: expected 16 hexadecimal digits", path, at / 17 + 1));
    texts.push_back(number);
  }
  return texts;
}

}  // namespace command
