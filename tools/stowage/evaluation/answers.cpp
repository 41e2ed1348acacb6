#include "evaluation/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/units.h"
#include "base/utf8.h"
#include "data/labelled.h"
#include "data/tagged.h"
#include "evaluation/entities.h"
#include "evaluation/label_metrics.h"
#include "evaluation/span_metrics.h"
#include "evaluation/spans.h"
#include "evaluation/value_metrics.h"

namespace command {
namespace {

struct LabelledDocument {
  EncodedText text;
  size_t number = 0;  // of the document's text in Examples::questions, from 1
  // The text's label or labels, or the label of each token (UINT32_MAX: none).
  std::vector<uint32_t> labels;
  std::vector<float> values;  // the text's numbers
};

template <class Number>
std::vector<Number> numbers_at(const std::string& bytes, size_t index, size_t count) {
  std::vector<Number> numbers(count);
  std::memcpy(numbers.data(), bytes.data() + index * sizeof(Number), count * sizeof(Number));
  return numbers;
}

std::vector<LabelledDocument> documents_from(const Examples& examples, uint64_t first, uint32_t task,
                                             size_t labels) {
  std::vector<LabelledDocument> documents;
  size_t document = 0;
  for (size_t begin = 0, end; begin < examples.tokens.size(); begin = end, ++document) {
    for (end = begin + 1; end < examples.tokens.size() && !(examples.marks[end] & STW_MARK_BEGIN);) ++end;
    if (begin < first) continue;
    LabelledDocument labelled;
    const auto at = [&](size_t token) {
      return examples.tokens.begin() + static_cast<std::ptrdiff_t>(token);
    };
    labelled.text = {{at(begin), at(end)}, {}, false};
    labelled.number = examples.origins[document].number;
    const auto is_second = [](char mark) { return (mark & STW_MARK_SECOND) != 0; };
    const auto marks = examples.marks.substr(begin, end - begin);
    if (std::any_of(marks.begin(), marks.end(), is_second))
      std::transform(marks.begin(), marks.end(), std::back_inserter(labelled.text.token_types), is_second);
    if (task == STW_TASK_TOKEN_LABEL)
      labelled.labels = numbers_at<uint32_t>(examples.labels, begin, end - begin);
    else if (task == STW_TASK_LABEL) labelled.labels = numbers_at<uint32_t>(examples.labels, document, 1);
    else if (task == STW_TASK_LABELS)
      labelled.labels.assign(examples.lists[document].begin(), examples.lists[document].end());
    else labelled.values = numbers_at<float>(examples.labels, document * labels, labels);
    documents.push_back(std::move(labelled));
  }
  return documents;
}

double cross_entropy(std::span<const float> logits, size_t label) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - largest);
  return largest + std::log(sum) - logits[label];
}

// Mean over the labels, each of which is a binary decision by its own logit.
double binary_cross_entropy(std::span<const float> logits, std::span<const uint32_t> labels) {
  double sum = 0;
  auto next = labels.begin();  // ascending
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool is_there = next != labels.end() && *next == i;
    next += is_there;
    const double x = logits[i];
    sum += std::max(x, 0.0) - (is_there ? x : 0.0) + std::log1p(std::exp(-std::abs(x)));
  }
  return sum / static_cast<double>(logits.size());
}

uint32_t largest_of(std::span<const float> logits) {
  return static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

void put(Answered& answered, const LabelMetrics& m, const std::string& positive) {
  answered.accuracy = m.accuracy;
  answered.figures = {{"f1_macro", m.f1_macro}, {"f1_micro", m.f1_micro}, {"matthews", m.matthews}};
  if (m.f1) answered.figures.emplace_back("f1", *m.f1);
  answered.line = fmt::format(
      "F1 {}{:.4f} macro, {:.4f} micro; Matthews correlation {:.4f}",
      m.f1 ? fmt::format("{:.4f} of the label {}, ", *m.f1, json_quoted(shortened(positive))) : "",
      m.f1_macro, m.f1_micro, m.matthews);
}

void put(Answered& answered, const LabelsMetrics& m) {
  answered.accuracy = m.accuracy;
  answered.figures = {{"f1_macro", m.f1_macro}, {"f1_micro", m.f1_micro}};
  answered.line =
      fmt::format("F1 {:.4f} macro, {:.4f} micro; accuracy counts texts whose labels are all right",
                  m.f1_macro, m.f1_micro);
}

void put(Answered& answered, const NumberMetrics& m) {
  const auto shown = [](double x) {
    return std::isfinite(x) ? fmt::format("{:.4f}", x) : std::string("undefined");
  };
  answered.figures = {{"mse", m.mse}, {"mae", m.mae}, {"pearson", m.pearson}, {"spearman", m.spearman}};
  answered.line = fmt::format("MSE {:.4f}, MAE {:.4f}; correlation {} (Pearson), {} (Spearman)", m.mse, m.mae,
                              shown(m.pearson), shown(m.spearman));
}

void put(Answered& answered, const SpanMetrics& m, bool may_be_none) {
  answered.figures = {{"exact", m.all.exact}, {"f1", m.all.f1}};
  answered.questions = m.all.count;
  answered.line = fmt::format("exact match {:.2f}, F1 {:.2f}, of {} questions", m.all.exact, m.all.f1,
                              grouped(m.all.count));
  if (!may_be_none) return;
  const auto add = [&](const char* key, const char* name, const SpanMetrics::Group& group) {
    if (group.count == 0) return;  // as in SQuAD's script
    answered.figures.emplace_back(std::string(key) + "_exact", group.exact);
    answered.figures.emplace_back(std::string(key) + "_f1", group.f1);
    answered.line += fmt::format("; {} {}: exact match {:.2f}, F1 {:.2f}", grouped(group.count), name,
                                 group.exact, group.f1);
  };
  add("has_answer", "with an answer", m.with_answer);
  add("no_answer", "without one", m.without_answer);
}

void put(Answered& answered, const EntityScores& scores) {
  const EntityCounts& all = scores.all;
  answered.figures = {{"precision", all.precision()},
                      {"recall", all.recall()},
                      {"f1", all.f1()},
                      {"entities", static_cast<double>(all.expected)}};
  for (const auto& [type, c] : scores.by_type)
    answered.by_type += fmt::format("{}{}:{{\"precision\":{},\"recall\":{},\"f1\":{},\"entities\":{}}}",
                                    answered.by_type.empty() ? "{" : ",", json_quoted(type), c.precision(),
                                    c.recall(), c.f1(), c.expected);
  answered.by_type += answered.by_type.empty() ? "{}" : "}";
  answered.line =
      fmt::format("entities: precision {:.4f}, recall {:.4f}, F1 {:.4f}; {} in the texts, {} found",
                  all.precision(), all.recall(), all.f1(), grouped(all.expected), grouped(all.predicted));
}

}  // namespace

namespace {

// The mean cross entropy of an answer's first and last token.
double span_loss(std::span<const float> logits, const LabelledDocument& document) {
  double loss = 0;
  for (size_t column = 0; column < 2; ++column) {
    std::vector<float> of_column;
    for (size_t i = column; i < logits.size(); i += 2) of_column.push_back(logits[i]);
    loss += cross_entropy(of_column, static_cast<size_t>(document.values[column])) / 2;
  }
  return loss;
}

// Questions about contexts. The texts of a question follow each other.
Answered answer_questions(stw_trainer* trainer, const Examples& examples, uint64_t first) {
  const QuestionSet& set = *examples.questions;
  const std::vector<LabelledDocument> documents = documents_from(examples, first, STW_TASK_SPANS, 2);
  const auto text_of = [&](const LabelledDocument& document) -> const QuestionText& {
    return set.texts[document.number - 1];
  };
  Answered answered;
  SpanCounts counts(set.has_impossible);
  std::vector<std::vector<float>> logits;  // of the texts of a question
  std::vector<TextLogits> texts;
  const auto finish = [&] {
    if (texts.empty()) return;
    for (size_t i = 0; i < texts.size(); ++i) texts[i].logits = logits[i];
    const size_t number = texts[0].text->question;
    std::vector<std::string> gold;
    for (const GoldAnswer& answer : set.questions[number].answers) gold.push_back(answer.text);
    counts.add(gold, find_answer(set, number, texts, set.has_impossible).text);
    texts.clear(), logits.clear();
  };
  const auto rows = [&](size_t i) { return documents[i].text.tokens.size(); };
  for (size_t begin = 0, end; begin < documents.size(); begin = end) {
    end = end_of_call(begin, documents.size(), 2, rows);
    std::vector<EncodedText> now;
    for (size_t i = begin; i < end; ++i) now.push_back(documents[i].text);
    const std::vector<float> all = label_logits(trainer, now, 2, true);
    auto next = all.begin();
    for (size_t i = begin; i < end; ++i) {
      const auto stop = next + static_cast<std::ptrdiff_t>(2 * rows(i));
      if (!texts.empty() && texts[0].text->question != text_of(documents[i]).question) finish();
      logits.emplace_back(next, stop);
      texts.push_back({&text_of(documents[i]), {}});
      answered.loss += span_loss(logits.back(), documents[i]);
      ++answered.count;
      next = stop;
    }
  }
  finish();
  answered.loss /= static_cast<double>(answered.count);
  put(answered, counts.metrics(), set.has_impossible);
  return answered;
}

}  // namespace

Answered answer_documents(stw_trainer* trainer, const Examples& examples, uint64_t first, uint32_t task,
                          std::span<const std::string> labels, size_t positive) {
  if (task == STW_TASK_SPANS) return answer_questions(trainer, examples, first);
  const size_t width = labels.size();
  const bool of_tokens = task == STW_TASK_TOKEN_LABEL, has_entities = of_tokens && are_entity_tags(labels);
  const std::vector<LabelledDocument> documents = documents_from(examples, first, task, width);
  Answered answered;
  std::vector<uint32_t> expected, predicted;  // of all texts, or of all words
  std::vector<float> values, logits_of_values;
  LabelsCounts counts(task == STW_TASK_LABELS ? width : 0);
  EntityScores entities;
  const auto rows = [&](size_t i) { return of_tokens ? documents[i].text.tokens.size() : 1; };
  for (size_t begin = 0, end; begin < documents.size(); begin = end) {
    end = end_of_call(begin, documents.size(), width, rows);
    const auto now = std::span(documents).subspan(begin, end - begin);
    std::vector<EncodedText> texts;
    for (const LabelledDocument& labelled : now) texts.push_back(labelled.text);
    const std::vector<float> logits = label_logits(trainer, texts, width, of_tokens);
    size_t row = 0;
    for (const LabelledDocument& labelled : now) {
      const auto next = [&] { return std::span(logits).subspan(row++ * width, width); };
      if (task == STW_TASK_LABELS || task == STW_TASK_NUMBER) {
        const auto answer = next();
        ++answered.count;
        if (task == STW_TASK_LABELS) {
          counts.add(labelled.labels, answer);
          answered.loss += binary_cross_entropy(answer, labelled.labels);
        } else {
          values.insert(values.end(), labelled.values.begin(), labelled.values.end());
          logits_of_values.insert(logits_of_values.end(), answer.begin(), answer.end());
        }
        continue;
      }
      std::vector<std::string> tags, found;
      for (const uint32_t label : labelled.labels) {
        const auto answer = next();
        if (label == UINT32_MAX) continue;
        answered.loss += cross_entropy(answer, label);
        ++answered.count;
        expected.push_back(label), predicted.push_back(largest_of(answer));
        if (has_entities) tags.push_back(labels[label]), found.push_back(labels[predicted.back()]);
      }
      entities.add(tags, found);
    }
  }
  answered.loss /= static_cast<double>(answered.count);
  if (task == STW_TASK_LABELS) {
    put(answered, counts.metrics());
  } else if (task == STW_TASK_NUMBER) {
    const NumberMetrics metrics = number_metrics(values, logits_of_values, width);
    answered.loss = metrics.mse;
    put(answered, metrics);
  } else if (answered.count > 0) {
    put(answered, label_metrics(expected, predicted, width, positive), width == 2 ? labels[positive] : "");
    if (has_entities) put(answered, entities);
    else if (of_tokens) answered.line += "; " + words_are_counted(labels);
  }
  return answered;
}

}  // namespace command
