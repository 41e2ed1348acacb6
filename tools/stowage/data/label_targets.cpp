#include "data/label_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string_view>

#include "base/failure.h"
#include "base/units.h"
#include "base/utf8.h"
#include "data/hold_out.h"
#include "data/label_checks.h"
#include "data/label_words.h"
#include "data/new_head.h"

namespace command {
namespace {

static_assert(std::endian::native == std::endian::little, "labels are stored little-endian");

// Finds the index of a word among the model's labels.
class Labels {
 public:
  Labels(std::span<const std::string> names, std::span<const LabelledText> texts)
      : names_(names), count_(names.size()) {
    for (size_t i = 0; i < names.size(); ++i) numbers_.emplace(names[i], static_cast<uint32_t>(i));
    const auto is_name = [&](const std::string& label) { return numbers_.count(label) > 0; };
    by_number_ = std::none_of(names.begin(), names.end(),
                              [](const std::string& name) { return whole_number_of(name).has_value(); }) &&
                 std::none_of(texts.begin(), texts.end(), [&](const LabelledText& t) {
                   return std::any_of(t.labels.begin(), t.labels.end(), is_name);
                 });
    is_by_place_ = by_number_ && count_ > 1 && ones_and_zeros(texts) == count_;
  }
  uint32_t operator()(const std::string& label, const std::string& place) const {
    if (by_number_) {
      if (const auto number = whole_number_of(label); number && *number < count_)
        return static_cast<uint32_t>(*number);
    } else if (const auto found = numbers_.find(label); found != numbers_.end()) {
      return found->second;
    }
    throw Failure(exit_failed,
                  fmt::format("{}: \"{}\" is not one of the model's {}{}", place, shortened(label),
                              count_and_labels(names_),
                              by_number_ && whole_number_of(label) ? ", which count from 0" : ""));
  }
  // For a text with one label.
  uint32_t operator()(const LabelledText& text) const {
    if (text.is_list)
      throw Failure(
          exit_failed,
          fmt::format("{}: has a list of labels, but the model gives each text one label", text.place));
    return (*this)(text.labels[0], text.place);
  }
  // For a text with any number of labels.
  std::vector<uint32_t> all_of(const LabelledText& text) const {
    std::vector<uint32_t> list;
    if (is_by_place_) {
      for (uint32_t i = 0; i < count_; ++i)
        if (*truth_of_word(text.labels[i])) list.push_back(i);
      return list;
    }
    for (const std::string& label : text.labels) list.push_back((*this)(label, text.place));
    std::sort(list.begin(), list.end());
    const auto twice = std::adjacent_find(list.begin(), list.end());
    if (twice == list.end()) return list;
    if (by_number_)
      throw Failure(exit_failed,
                    fmt::format("{}: has the label {} twice: expected each number once, or {} ones "
                                "and zeros, one for each label of the model",
                                text.place, *twice, grouped(count_)));
    throw Failure(exit_failed, fmt::format("{}: has the label \"{}\" twice: expected each label once",
                                           text.place, shortened(names_[*twice])));
  }

 private:
  std::span<const std::string> names_;
  size_t count_;
  std::map<std::string_view, uint32_t> numbers_;
  bool by_number_ = false;    // labels are indices
  bool is_by_place_ = false;  // lists have a one or a zero for each label
};

// The numbers of a text, of which the model gives `width`.
std::vector<float> numbers_in(const LabelledText& text, size_t width) {
  if (text.labels.size() != width)
    throw Failure(exit_failed, fmt::format("{}: expected {} numbers, as many as the model gives, found {}",
                                           text.place, width, text.labels.size()));
  std::vector<float> numbers;
  for (const std::string& word : text.labels) numbers.push_back(number_in(text, word));
  return numbers;
}

}  // namespace

void require_labels(std::span<const LabelledText> texts, std::span<const std::string> labels, uint32_t task) {
  const Labels number_of_label(task == STW_TASK_NUMBER ? std::span<const std::string>() : labels, texts);
  for (const LabelledText& text : texts) {
    if (task == STW_TASK_LABEL) number_of_label(text);
    else if (task == STW_TASK_NUMBER) numbers_in(text, labels.size());
    else number_of_label.all_of(text);
  }
}

std::vector<uint32_t> label_numbers(std::span<const LabelledText> texts,
                                    std::span<const std::string> labels) {
  const Labels number_of_label(labels, texts);
  std::vector<uint32_t> numbers;
  for (const LabelledText& text : texts) numbers.push_back(number_of_label(text));
  return numbers;
}

LabelLists label_lists(std::span<const LabelledText> texts, std::span<const std::string> labels) {
  const Labels number_of_label(labels, texts);
  LabelLists lists;
  for (const LabelledText& text : texts) lists.add(number_of_label.all_of(text));
  return lists;
}

std::vector<float> number_values(std::span<const LabelledText> texts, size_t width) {
  std::vector<float> values;
  for (const LabelledText& text : texts) {
    const std::vector<float> numbers = numbers_in(text, width);
    values.insert(values.end(), numbers.begin(), numbers.end());
  }
  return values;
}

Examples label_examples(std::span<const LabelledText> texts, std::span<const std::string> labels,
                        const Tokenization& tokenization, const stw_model_info& model, uint64_t sequence,
                        Order order) {
  const bool has_lists = model.task == STW_TASK_LABELS;
  LabelLists lists;         // of all texts
  std::string label_bytes;  // of all texts, the same number for each, if they have no lists
  const auto put = [&](const auto& numbers) {
    label_bytes.assign(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof numbers[0]);
  };
  if (has_lists) {
    lists = label_lists(texts, labels);
  } else if (model.task == STW_TASK_NUMBER) {
    put(number_values(texts, labels.size()));
  } else {
    const std::vector<uint32_t> numbers = label_numbers(texts, labels);
    for (const uint32_t number : numbers) lists.add({&number, 1});
    put(numbers);
  }
  const size_t bytes_of_text = label_bytes.size() / texts.size();
  struct Document {
    std::vector<int32_t> tokens, token_types;
    size_t text;
  };
  std::vector<Document> documents;
  Examples all;
  for (const LabelledText& text : texts) {
    EncodedText encoded = tokens_of(text, tokenization, model, sequence);
    if (encoded.tokens.empty())
      throw Failure(exit_failed, fmt::format("{}: expected at least one token, found none", text.place));
    documents.push_back({std::move(encoded.tokens), std::move(encoded.token_types), documents.size()});
    all.counts.longer += encoded.is_cut;
  }
  shuffle(documents, order);
  if (model.task != STW_TASK_NUMBER && order == Order::shuffled) {
    std::vector<size_t> lengths;
    LabelLists of_documents;
    for (const Document& document : documents) {
      lengths.push_back(document.tokens.size());
      of_documents.add(lists[document.text]);
    }
    keep_labels(documents, lengths, of_documents);
  }
  all.counts.examples = all.counts.learned = documents.size();
  for (const auto& [tokens, token_types, text] : documents) {
    all.labels.append(label_bytes, text * bytes_of_text, bytes_of_text);
    if (has_lists) all.lists.add(lists[text]);
    all.origins.push_back({text + 1, texts[text].place});
    for (size_t i = 0; i < tokens.size(); ++i) all.marks += mark_of(token_types, i, texts[text].place);
    all.tokens.insert(all.tokens.end(), tokens.begin(), tokens.end());
  }
  return all;
}

}  // namespace command
