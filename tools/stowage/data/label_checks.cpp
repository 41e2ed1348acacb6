#include "data/label_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "base/failure.h"
#include "base/messages.h"
#include "base/units.h"
#include "base/utf8.h"
#include "data/label_words.h"

namespace command {
namespace {

constexpr size_t least_texts = 50;      // with fewer texts, many labels are no surprise
constexpr size_t texts_of_a_label = 5;  // with fewer on average, a warning
constexpr size_t most_warnings = 5;

// Calls all_of's predicate for each label of each text.
template <class Predicate>
bool all_labels(std::span<const LabelledText> texts, const Predicate& predicate) {
  return std::all_of(texts.begin(), texts.end(), [&](const LabelledText& text) {
    return std::all_of(text.labels.begin(), text.labels.end(), predicate);
  });
}

bool are_truths(std::span<const LabelledText> texts) {
  return all_labels(texts, [](const std::string& label) { return truth_of_word(label).has_value(); });
}

bool has_equal_lengths(std::span<const LabelledText> texts) {
  return std::all_of(texts.begin(), texts.end(),
                     [&](const LabelledText& text) { return text.labels.size() == texts[0].labels.size(); });
}

// Whether the labels are whole numbers, and none between the smallest and the largest is missing.
bool are_numbered_classes(std::span<const LabelledText> texts) {
  std::set<uint64_t> numbers;
  for (const LabelledText& text : texts) {
    const auto number = whole_number_of(text.labels[0]);
    if (!number) return false;
    numbers.insert(*number);
  }
  return *numbers.rbegin() - *numbers.begin() == numbers.size() - 1;
}

// Throws if the labels are numbers and words such as "nan", because such words would become labels.
void check_missing_numbers(std::span<const LabelledText> texts) {
  const LabelledText* first = nullptr;
  const std::string* word = nullptr;
  bool has_numbers = false;
  for (const LabelledText& text : texts)
    for (const std::string& label : text.labels) {
      if (looks_like_number(label)) {
        has_numbers = true;
      } else if (!stands_for_no_number(label)) {
        return;
      } else if (!first) {
        first = &text, word = &label;
      }
    }
  if (first && has_numbers)
    throw Failure(exit_usage, fmt::format("{}: the label \"{}\" is not a number, and the others are: leave "
                                          "this text out, or make names of all labels with --task {}",
                                          first->place, *word, first->is_list ? "labels" : "label"));
}

// The first label of a text that the text has twice; null if there is none.
const std::string* repeated_label(const LabelledText& text) {
  std::set<std::string_view> seen;
  for (const std::string& label : text.labels)
    if (!seen.insert(label).second) return &label;
  return nullptr;
}

// What stops the numbers from being read by --task number; else empty.
std::string unread_number(std::span<const LabelledText> texts) {
  for (const LabelledText& text : texts)
    for (const std::string& label : text.labels)
      if (const std::string why = why_unread(label); !why.empty())
        return fmt::format(" (not as \"{}\" in {}: {})", shortened(label), text.place, why);
  return {};
}

// Throws if all names are truths, and one is written as a word and as a number, such as "true" and "1".
// Among other names such a pair may be two labels, which gives a warning.
void check_truths(std::span<const std::string> names, const std::string& path) {
  const bool are_truths = std::all_of(
      names.begin(), names.end(), [](const std::string& name) { return truth_of_word(name).has_value(); });
  for (const bool truth : {true, false}) {
    const auto written = [&](bool as_number) {
      return std::find_if(names.begin(), names.end(), [&](const std::string& name) {
        return truth_of_word(name) == truth && looks_like_number(name) == as_number;
      });
    };
    const auto number = written(true), word = written(false);
    if (number == names.end() || word == names.end()) continue;
    if (are_truths)
      throw Failure(exit_failed, fmt::format("{}: the labels \"{}\" and \"{}\" mean the same, and would be "
                                             "two labels: write them alike",
                                             path, *number, *word));
    complain("stowage: warning: {}: the labels \"{}\" and \"{}\" often mean the same, and are two labels",
             path, *number, *word);
  }
}

}  // namespace

std::vector<std::string> labels_of(std::span<const LabelledText> texts) {
  std::set<std::string> names;
  for (const LabelledText& text : texts) names.insert(text.labels.begin(), text.labels.end());
  std::vector<std::string> list(names.begin(), names.end());
  if (std::all_of(list.begin(), list.end(),
                  [](const std::string& name) { return whole_number_of(name).has_value(); }))
    std::stable_sort(list.begin(), list.end(), [](const std::string& a, const std::string& b) {
      return *whole_number_of(a) < *whole_number_of(b);
    });
  return list;
}

void check_names(std::span<const std::string> names, const std::string& path) {
  const bool are_numbers = std::all_of(
      names.begin(), names.end(), [](const std::string& name) { return real_number_of(name).has_value(); });
  check_truths(names, path);
  std::map<double, std::string_view> numbers;
  std::map<std::string, std::string_view> spellings;
  size_t alike = 0;
  for (const std::string& name : names) {
    if (const auto number = real_number_of(name); number && are_numbers) {
      const auto [other, is_new] = numbers.emplace(*number, name);
      const bool are_digits = whole_number_of(name) &&
                              whole_number_of(other->second);  // such as "01" and "1", which may be names
      if (!is_new && !are_digits)
        throw Failure(exit_failed, fmt::format("{}: the labels \"{}\" and \"{}\" are the same number, and "
                                               "would be two labels: write them alike",
                                               path, other->second, name));
    }
    const auto [other, is_new] = spellings.emplace(as_it_looks(name), name);
    if (is_new || ++alike > most_warnings) continue;
    const bool is_of_case = without_case(without_blanks(name)) == without_case(without_blanks(other->second));
    complain("stowage: warning: {}: the labels \"{}\" and \"{}\" differ in {} alone, and are two labels",
             path, shortened(std::string(other->second)), shortened(name),
             is_of_case ? "case or blanks" : "blanks, Unicode form or invisible characters");
  }
  if (alike > most_warnings)
    complain("stowage: warning: {}: {} more labels look like another one", path,
             grouped(alike - most_warnings));
}

void check_count(size_t labels, size_t texts, const std::string& path) {
  if (texts < least_texts || labels * texts_of_a_label <= texts) return;
  complain(
      "stowage: warning: {}: its {} texts have {} different labels: a label with fewer than {} texts is "
      "hardly learned; --label-field names another column",
      path, grouped(texts), grouped(labels), texts_of_a_label);
}

std::optional<size_t> ones_and_zeros(std::span<const LabelledText> texts) {
  const bool are_lists =
      std::all_of(texts.begin(), texts.end(), [](const LabelledText& text) { return text.is_list; });
  const size_t width = texts[0].labels.size();
  return are_lists && width > 1 && has_equal_lengths(texts) && are_truths(texts) ? std::optional(width)
                                                                                 : std::nullopt;
}

void check_lists(std::span<const LabelledText> texts, const std::string& path) {
  if (const auto width = ones_and_zeros(texts))
    throw Failure(exit_usage,
                  fmt::format("--data {}: its lists have {} ones and zeros, one for each label: name the {} "
                              "labels in this order with --label-names NAME,…, or write the names of a "
                              "text's labels, [\"…\", …]",
                              path, *width, *width));
  if (!all_labels(texts, looks_like_number) && !are_truths(texts)) return;
  for (const LabelledText& text : texts)
    if (const std::string* const twice = repeated_label(text))
      throw Failure(
          exit_failed,
          fmt::format("{}: has the label \"{}\" twice: expected each label once{}", text.place, *twice,
                      are_truths(texts)
                          ? fmt::format(", or lists of as many ones and zeros as {} has, which is {}",
                                        texts[0].place, texts[0].labels.size())
                          : "; --task number learns lists of numbers, as many for each text"));
  if (are_truths(texts))
    throw Failure(exit_usage, fmt::format("--data {}: its labels are 0 and 1 alone: name them with "
                                          "--label-names NAME,NAME, or write their names",
                                          path));
}

uint32_t task_of(std::span<const LabelledText> texts, const std::string& path) {
  const bool has_names = !all_labels(texts, looks_like_number);
  const bool has_lists =
      std::any_of(texts.begin(), texts.end(), [](const LabelledText& text) { return text.is_list; });
  if (std::all_of(texts.begin(), texts.end(), [](const LabelledText& text) { return text.labels.empty(); }))
    throw Failure(exit_failed, fmt::format("{}: no text has a label", path));
  check_missing_numbers(texts);
  const bool are_values = has_lists && has_equal_lengths(texts) && !are_truths(texts);
  if (has_lists && (has_names || !are_values)) return STW_TASK_LABELS;
  if (!has_lists && (has_names || are_numbered_classes(texts))) return STW_TASK_LABEL;
  const bool are_no_names =
      has_lists && std::any_of(texts.begin(), texts.end(),
                               [](const LabelledText& text) { return repeated_label(text) != nullptr; });
  throw Failure(exit_usage,
                fmt::format("--data {}: its labels are numbers: learn them as numbers with --task number{}{}",
                            path, unread_number(texts),
                            are_no_names ? std::string()
                                         : fmt::format(", or as names with --task {}",
                                                       has_lists ? "labels" : "label")));
}

float number_in(const LabelledText& text, const std::string& word) {
  const auto number = real_number_of(word);
  if (number && std::isfinite(static_cast<float>(*number))) return static_cast<float>(*number);
  const std::string why = why_unread(word);
  throw Failure(exit_failed, fmt::format("{}: expected a finite number, found \"{}\"{}{}", text.place,
                                         shortened(word), why.empty() ? "" : "; ", why));
}

size_t numbers_of_each(std::span<const LabelledText> texts) {
  const size_t count = texts[0].labels.size();
  if (count == 0)
    throw Failure(exit_failed, fmt::format("{}: expected a number, found none", texts[0].place));
  for (const LabelledText& text : texts) {
    if (text.labels.size() != count)
      throw Failure(exit_failed,
                    fmt::format("{}: expected {} numbers, as many as the first text has, found {}",
                                text.place, count, text.labels.size()));
    for (const std::string& word : text.labels) number_in(text, word);
  }
  return count;
}

}  // namespace command
