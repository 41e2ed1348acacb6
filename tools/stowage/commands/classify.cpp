// `stowage classify`: predicts the label of a text, or of each of its words, with its probability; or the
// number of a text.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>

#include "base/failure.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "base/messages.h"
#include "base/prompt.h"
#include "base/units.h"
#include "commands/commands.h"
#include "data/data.h"
#include "data/data_flags.h"
#include "data/labelled.h"
#include "data/question_texts.h"
#include "data/tagged.h"
#include "data/text_pairs.h"
#include "evaluation/entities.h"
#include "evaluation/probabilities.h"
#include "evaluation/spans.h"
#include "flags/number_checks.h"
#include "run/inference.h"

namespace command {
namespace {

constexpr uint64_t longest_default = 1024;  // tokens of a text; a run's own sequence length comes first
constexpr uint64_t rows_of_encoder = 512;   // tokens of the texts that an encoder reads at once

struct ClassifyCommand {
  ModelFlags model;
  PlanFlags plan;
  LabelFields fields;
  std::string tokenizer = "auto", data;  // data: the name of the data source
  std::vector<std::string> files;
  std::string format = "auto";
  DataSource source;
  std::vector<std::string> texts;
  std::string question;  // about each of `texts`
  QuestionFlags questions;
  std::optional<uint64_t> top;
  std::optional<double> threshold;
  bool json = false;
  uint32_t task = STW_TASK_LABEL;  // task of the model

  void run() {
    take_defaults_of_run(model, plan);
    plan.batch = 1;
    for (const std::string& text : texts)
      if (is_there(text) && !is_folder(text))
        complain(
            "stowage: warning: --text {}: is classified as a text, though there is a file of that name; "
            "--data reads files",
            text);
    if (!files.empty())
      source =
          DataSource(files, {format, fields.text, fields.label, tokenizer == "ids", tokenizer == "byte"});
    data = source.name();
    if (holds_questions(source, true) && query(open_model(model)).task == STW_TASK_SPANS)
      take_settings_of_run(questions, run_of(model));
    else if (source.is_table() || (source.holds_objects() && !holds_tags(source, fields)))
      find_pair(source, fields);
    else if (fields.pair_given)
      throw Failure(exit_usage, "--pair-field: is for tables and JSON of texts (--data)");
    if (source.is_conll()) take_columns_of_run(fields, run_of(model));
    const Model classifier = open_model(model);
    const stw_model_info about = query(classifier);
    const std::vector<std::string> labels = labels_of(classifier);
    if (labels.empty())
      throw Failure(
          exit_usage,
          fmt::format("{}: is {}: `stowage train` makes a classifier of it, from texts with labels",
                      model.source,
                      about.generates                                ? "a language model"
                      : about.task == STW_TASK_MASKED_LANGUAGE_MODEL ? "a masked language model"
                                                                     : "an encoder without labels"));
    task = about.task;
    check_task(model.source);
    if (task != STW_TASK_SPANS && (!question.empty() || questions.any()))
      throw Failure(exit_usage,
                    fmt::format("--question, --doc-stride, --skip-bad-questions, --n-best, "
                                "--max-answer-length and --null-threshold: are for models that find "
                                "answers (train --task spans); {} does not",
                                model.source));
    const auto tokenization = Tokenization::of_file(tokenizer, data.empty() ? "--text" : data,
                                                    source.has_tokens(), run_of(model), about.vocabulary);
    // Texts are at most as long as the samples of training: later positions may be untrained.
    check_sequence(plan.sequence, about.positions);
    const uint64_t most = plan.sequence.value_or(std::min(about.positions, longest_default));
    if (about.task == STW_TASK_SPANS) return run_questions(tokenization, about, most);
    if (about.task == STW_TASK_TOKEN_LABEL) return run_words(tokenization, about, labels, most);
    uint64_t longest = 2;
    std::vector<EncodedText> encoded;
    for (const LabelledText& text : all_texts()) {
      encoded.push_back(tokens_of(text, tokenization, about, most));
      longest = std::max<uint64_t>(longest, encoded.back().tokens.size());
    }
    const Inference opened = open_classifier(longest, about);
    std::vector<std::string> names;  // as they are printed
    for (const std::string& label : labels) names.push_back(json ? json_quoted(label) : name_of(label));
    for (size_t first = 0, end; first < encoded.size(); first = end) {
      end = end_of_call(first, encoded.size(), labels.size(), [](size_t) { return 1; });
      answer(opened.trainer.get(), std::span(encoded).subspan(first, end - first), names);
    }
    const auto empty = static_cast<uint64_t>(std::count_if(
        encoded.begin(), encoded.end(), [](const EncodedText& text) { return text.tokens.empty(); }));
    if (empty > 0)
      complain(
          "stowage: warning: {} of {} texts have no token, and the tokenizer puts none around them: the "
          "model has no answer to them, and their lines are {}",
          grouped(empty), grouped(encoded.size()), json ? "null" : "empty");
  }

  // An encoder reads several texts at once, as many as fit a sample, or fewer if the budget is too small.
  // `longest`: tokens of the longest text.
  Inference open_classifier(uint64_t longest, const stw_model_info& about) {
    uint64_t rows =
        about.generates ? longest : std::max(longest, std::min<uint64_t>(about.positions, rows_of_encoder));
    for (;; rows = std::max(longest, rows / 2)) {
      plan.sequence = rows;
      try {
        return open_inference(model, plan);
      } catch (const Failure& failure) {
        if (failure.exit_code != exit_does_not_fit || rows == longest) throw;
      }
    }
  }

  Questions all_questions() const {
    Questions all;
    if (!data.empty()) {
      if (!holds_questions(source, true))
        throw Failure(exit_usage,
                      fmt::format("--data {}: the model finds answers in contexts: expected SQuAD's JSON, or "
                                  "JSON of {{\"question\": …, \"context\": …}}",
                                  data));
      all = read_questions(source, false, questions.skips_bad);
    }
    if (texts.empty() && !question.empty())
      throw Failure(exit_usage, "--question: --text is required, the context");
    for (const std::string& text : texts) {
      if (question.empty())
        throw Failure(exit_usage, "--text: the model finds answers to a --question in the text");
      const std::string id = std::to_string(all.list.size() + 1);
      all.list.push_back({id, question, std::make_shared<const std::string>(text), {}, "--text " + id});
    }
    if (all.list.empty())
      throw Failure(exit_usage, "--data is required, or --question and --text: the questions to answer");
    return all;
  }

  void run_questions(const Tokenization& tokenization, const stw_model_info& about, uint64_t most) {
    if (top) throw Failure(exit_usage, "--top: is for labels, and this model finds answers");
    const QuestionSet set =
        question_set(all_questions(), questions, tokenization, about, most, data.empty() ? "--text" : data);
    uint64_t longest = 2;
    for (const QuestionText& text : set.texts) longest = std::max<uint64_t>(longest, text.text.tokens.size());
    const Inference opened = open_classifier(longest, about);
    const auto rows = [&](size_t i) { return set.texts[i].text.tokens.size(); };
    std::vector<std::vector<float>> logits;  // of the texts of a question
    std::vector<TextLogits> of_question;
    for (size_t first = 0, end; first < set.texts.size(); first = end) {
      end = end_of_call(first, set.texts.size(), 2, rows);
      std::vector<EncodedText> now;
      for (size_t i = first; i < end; ++i) now.push_back(set.texts[i].text);
      const std::vector<float> all = label_logits(opened.trainer.get(), now, 2, true);
      auto next = all.begin();
      for (size_t i = first; i < end; ++i) {
        logits.emplace_back(next, next + static_cast<std::ptrdiff_t>(2 * rows(i)));
        next += static_cast<std::ptrdiff_t>(2 * rows(i));
        of_question.push_back({&set.texts[i], {}});
        const size_t number = set.texts[i].question;
        if (i + 1 < set.texts.size() && set.texts[i + 1].question == number) continue;
        for (size_t k = 0; k < logits.size(); ++k) of_question[k].logits = logits[k];
        print_answer(set, number, of_question);
        logits.clear(), of_question.clear();
      }
    }
    if (set.left_out > 0)
      complain("stowage: warning: {} questions that fill a sample of {} tokens are left out",
               grouped(set.left_out), grouped(most));
  }

  // One JSON object a line. Places are characters of the context.
  void print_answer(const QuestionSet& set, size_t number, std::span<const TextLogits> logits) const {
    const Question& asked = set.questions[number];
    const FoundAnswer found = find_answer(set, number, logits, true);
    const bool is_there = found.end > found.begin;
    const auto place = [&](size_t byte) {
      return is_there ? fmt::format("{}", characters_before(*asked.context, byte)) : std::string("null");
    };
    write_line(
        fmt::format("{{\"id\":{},\"answer\":{},\"start\":{},\"end\":{},\"score\":{},"
                    "\"null_score\":{}}}",
                    json_quoted(asked.id), json_quoted(found.text), place(found.begin), place(found.end),
                    found.score, found.none));
  }

  // The words of a text. `places` are their bytes in the text; empty if the data gives the words themselves.
  struct Words {
    std::vector<std::string> words;
    std::string place, text;
    std::vector<std::pair<size_t, size_t>> places;
    std::string joined(size_t first, size_t end) const {
      if (!places.empty())
        return text.substr(places[first].first, places[end - 1].second - places[first].first);
      return fmt::format("{}", fmt::join(words.begin() + static_cast<std::ptrdiff_t>(first),
                                         words.begin() + static_cast<std::ptrdiff_t>(end), " "));
    }
  };

  std::vector<Words> all_words() const {
    std::vector<Words> all;
    if (!data.empty() && holds_tags(source, fields))
      for (TaggedText& text : read_tagged(source, fields, false))
        all.push_back({std::move(text.words), text.place, "", {}});
    if (all.empty() || !texts.empty())
      for (LabelledText& text : all_texts(!all.empty())) {
        if (text.pair)
          throw Failure(
              exit_failed,
              fmt::format("{}: has two texts, but the model labels the words of a single text", text.place));
        Words words{{}, text.place, std::move(text.text), {}};
        words.places = word_places(words.text, words.place);
        for (const auto& [begin, end] : words.places)
          words.words.push_back(words.text.substr(begin, end - begin));
        all.push_back(std::move(words));
      }
    return all;
  }

  void run_words(const Tokenization& tokenization, const stw_model_info& about,
                 const std::vector<std::string>& labels, uint64_t most) {
    if (top > 1)
      throw Failure(exit_usage, "--top: is for labels of whole texts, but this model labels words");
    const std::vector<Words> all = all_words();
    uint64_t longest = 2, cut = 0;
    std::vector<EncodedWords> encoded;
    for (const Words& text : all) {
      encoded.push_back(text.words.empty()
                            ? EncodedWords{}
                            : tokens_of_words(text.words, text.place, tokenization, about, most));
      longest = std::max<uint64_t>(longest, encoded.back().text.tokens.size());
      cut += encoded.back().text.is_cut;
    }
    if (cut > 0)
      complain("stowage: warning: {} of {} texts are cut to {} tokens: words past that have no label{}",
               grouped(cut), grouped(all.size()), grouped(most),
               most < about.positions ? "; give a longer --seq" : ", and the model has no more positions");
    const Inference opened = open_classifier(longest, about);
    const bool has_entities = are_entity_tags(labels);
    const auto rows = [&](size_t i) { return encoded[i].text.tokens.size(); };
    for (size_t first = 0, end; first < encoded.size(); first = end) {
      end = end_of_call(first, encoded.size(), labels.size(), rows);
      const auto now = std::span(encoded).subspan(first, end - first);
      std::vector<EncodedWords> some;  // only texts with words
      std::copy_if(now.begin(), now.end(), std::back_inserter(some),
                   [](const EncodedWords& text) { return !text.first.empty(); });
      const std::vector<std::vector<float>> logits =
          some.empty() ? std::vector<std::vector<float>>()
                       : word_logits(opened.trainer.get(), some, labels.size());
      for (size_t i = 0, answered = 0; i < now.size(); ++i)
        print_words(all[first + i], now[i], now[i].first.empty() ? std::vector<float>() : logits[answered++],
                    labels, has_entities);
    }
  }

  // Prints the labels of words, or the entities; the score of an entity is the mean score of its words.
  void print_words(const Words& text, const EncodedWords& encoded, const std::vector<float>& logits,
                   const std::vector<std::string>& labels, bool has_entities) const {
    std::vector<std::string> tags(text.words.size());  // empty: no label
    std::vector<double> scores(text.words.size());
    Probabilities probabilities;
    size_t row = 0;
    for (size_t w = 0; w < tags.size(); ++w) {
      if (encoded.first[w] < 0) continue;
      probabilities.take(std::span(logits).subspan(row++ * labels.size(), labels.size()), true);
      const auto [score, label] = probabilities.best();
      tags[w] = labels[label], scores[w] = score;
    }
    std::string line;
    const auto add = [&](const std::string& item, const char* between) {
      line += (line.empty() ? "" : json ? "," : between) + item;
    };
    if (has_entities) {
      for (const Entity& e : entities_of(tags)) {
        const std::span<const double> of_words = std::span(scores).subspan(e.first, e.end - e.first);
        const double score =
            std::accumulate(of_words.begin(), of_words.end(), 0.0) / static_cast<double>(of_words.size());
        const std::string words = text.joined(e.first, e.end);
        if (json)
          add(fmt::format("{{\"label\":{},\"score\":{},\"first\":{},\"end\":{},\"text\":{}}}",
                          json_quoted(e.type), score, e.first, e.end, json_quoted(words)),
              "");
        else
          add(fmt::format("{} {}:{} {:.4f} {}", name_of(e.type), e.first, e.end, score, name_of(words)),
              "\t");
      }
    } else {
      for (size_t w = 0; w < tags.size(); ++w) {
        const bool is_labelled = !tags[w].empty();
        const std::string label = is_labelled ? json_quoted(tags[w]) : "null",
                          score = is_labelled ? fmt::format("{}", scores[w]) : "null";
        if (json)
          add(fmt::format("{{\"word\":{},\"label\":{},\"score\":{}}}", json_quoted(text.words[w]), label,
                          score),
              "");
        else add(name_of(text.words[w]) + (is_labelled ? "/" + name_of(tags[w]) : ""), " ");
      }
    }
    const std::string whole = json ? "[" + line + "]\n" : line + "\n";
    std::fwrite(whole.data(), 1, whole.size(), stdout);
  }

  // `given_alone`: only the texts of --text.
  std::vector<LabelledText> all_texts(bool given_alone = false) const {
    std::vector<LabelledText> all;
    for (const std::string& text : texts) all.push_back({text, {}, "--text"});
    if (given_alone) return all;
    if (data.empty()) {
      if (all.empty()) throw Failure(exit_usage, "--text or --data is required: the texts to classify");
      return all;
    }
    if (!fields.text_given && holds_questions(source, false)) refuse_questions(source, model.source);
    for (LabelledText& text : source.is_table() || source.holds_objects()
                                  ? read_labelled(source, fields, ReadPurpose::answers)
                                  : read_lines(source))
      all.push_back(std::move(text));
    return all;
  }

  void check_task(const std::string& name) const {
    if (task != STW_TASK_LABELS && threshold)
      throw Failure(
          exit_usage,
          fmt::format("--threshold: is for models that give a text any number of labels; {} gives it {}",
                      name,
                      task == STW_TASK_NUMBER        ? "numbers"
                      : task == STW_TASK_TOKEN_LABEL ? "one for each word"
                                                     : "one"));
    if (task == STW_TASK_NUMBER && top)
      throw Failure(exit_usage, fmt::format("--top: is for labels; {} gives a text numbers", name));
  }

  void answer(stw_trainer* trainer, std::span<const EncodedText> encoded,
              const std::vector<std::string>& names) const {
    std::vector<EncodedText> some;
    std::copy_if(encoded.begin(), encoded.end(), std::back_inserter(some),
                 [](const EncodedText& text) { return !text.tokens.empty(); });
    const std::vector<float> outputs =
        some.empty() ? std::vector<float>() : label_logits(trainer, some, names.size());
    auto next = outputs.begin();
    Probabilities probabilities;
    std::string line;
    for (const EncodedText& text : encoded) {
      if (text.tokens.empty()) {
        write_line(!json                                ? ""
                   : task == STW_TASK_LABELS || top > 1 ? "null"
                   : task != STW_TASK_NUMBER            ? "{\"label\":null,\"score\":null}"
                   : names.size() > 1                   ? "{\"numbers\":null}"
                                                        : "{\"number\":null}");
        continue;
      }
      const std::span<const float> of_text(next, next + static_cast<std::ptrdiff_t>(names.size()));
      next += static_cast<std::ptrdiff_t>(names.size());
      if (task == STW_TASK_NUMBER) {
        print_numbers(of_text);
        continue;
      }
      probabilities.take(of_text, task == STW_TASK_LABEL);
      line.clear();
      append_labels(line, probabilities, names);
      write_line(line);
    }
  }

  // The label on one line: with escapes if it has line breaks.
  static std::string name_of(const std::string& label) {
    const bool breaks = std::any_of(label.begin(), label.end(), [](unsigned char c) { return c < 0x20; });
    static const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
    return breaks ? json_quoted(label) : is_terminal ? printable(label) : label;
  }

  // Appends the most probable labels first; equal ones keep their order. Appends --top of them. Without
  // --top, a model that gives several labels has those above the threshold. `names` are the labels as they
  // are printed.
  void append_labels(std::string& line, const Probabilities& probabilities,
                     const std::vector<std::string>& names) const {
    const bool is_several = task == STW_TASK_LABELS, is_list = json && (is_several || top.value_or(1) > 1);
    if (is_list) line += '[';
    const size_t begin = line.size();
    for (const auto& [share, label] : is_several && !top     ? probabilities.above(threshold.value_or(0.5))
                                      : top.value_or(1) == 1 ? std::vector{probabilities.best()}
                                                             : probabilities.most_probable(*top)) {
      if (line.size() > begin) line += json ? ',' : '\t';
      if (json) {
        fmt::format_to(std::back_inserter(line), "{{\"label\":{},\"score\":{}}}", names[label], share);
      } else {
        line += names[label], line += ' ';
        append_share(line, share);
      }
    }
    if (is_list) line += ']';
  }

  void print_numbers(std::span<const float> numbers) const {
    std::string line;
    for (const float number : numbers)
      line += fmt::format("{}{}", line.empty() ? "" : json ? "," : "\t", number);
    write_line(!json                ? line
               : numbers.size() > 1 ? fmt::format("{{\"numbers\":[{}]}}", line)
                                    : fmt::format("{{\"number\":{}}}", line));
  }

  static void write_line(std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
  }
};

}  // namespace

void add_classify(CLI::App& application) {
  auto self = std::make_shared<ClassifyCommand>();
  CLI::App& command = *application.add_subcommand(
      "classify", "Predict the label, the labels or the number of a text, or the labels of its words.");
  command.footer(
      "It prints a line for each text, in their order. An empty text has a line too. Texts are cut to the "
      "samples that the classifier was trained on.\n"
      "  one label of a text: the label and its probability\n"
      "  any number of labels: those above --threshold, each with its probability; an empty line if there "
      "are none\n"
      "  numbers: the numbers\n"
      "  labels of words: the entities of the text, each as LABEL FIRST:END SCORE WORDS, with tabs between "
      "them; or WORD/TAG for each word,\n"
      "    where tags do not say where entities begin. A text is split at white space and punctuation, "
      "unless its file has words.\n"
      "  answers in contexts: a JSON object for each question: its id, the answer, the "
      "characters of the context\n"
      "    where it begins and ends, its probability, and that of no answer (null_score); an empty answer if "
      "there is none\n"
      "A text without tokens, such as an empty text if the tokenizer adds no special tokens, has an empty "
      "line (--json: null).");
  add_model_flags(command, self->model);
  add_from_scratch_flag(command, self->model);
  command.add_option("--text", self->texts, "A text to classify. May be given several times.")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  command
      .add_option("--question", self->question,
                  "A question about each --text, for a model that finds answers.")
      ->check(not_empty())
      ->type_name("TEXT");
  command
      .add_option("--data", self->files,
                  "Files of texts, folders of them, patterns, or a pipe: tables, JSON, .conll or JSON of "
                  "words, SQuAD's JSON of questions, or any other files, with one text a line.")
      ->check(not_empty())
      ->expected(1, -1)
      ->type_name("FILE...");
  add_data_format_flag(command, self->format);
  add_field_flags(command, self->fields, false);
  command
      .add_option("--top", self->top,
                  "Print the K most probable labels, instead of the best one or those above --threshold.")
      ->check(positive())
      ->type_name("K");
  command
      .add_option("--threshold", self->threshold,
                  "For several labels: a text has the labels with a probability above P. Default: 0.5.")
      ->check(number_in(0, 1))
      ->excludes(command.get_option("--top"))
      ->type_name("P");
  command.add_flag("--json", self->json,
                   "One JSON object a line, {\"label\": …, \"score\": …}; with --top, for words and for "
                   "several labels, a list of them;\n"
                   "{\"number\": …}, or {\"numbers\": […]}.");
  add_tokenizer_flag(command, self->tokenizer);
  add_question_flags(command, self->questions);
  command
      .add_option(
          "--seq", self->plan.sequence,
          "Longest text. Default: the samples of the training run, else the model's, at most 1024 tokens.")
      ->check(whole_number(2))
      ->type_name("N");
  command.add_option("--device", self->plan.device, "cpu or cuda.")->type_name("NAME");
  add_bytes(command, "--vram,--memory", self->plan.memory_bytes,
            "Bounds the memory. Default: the smallest budget that works.");
  add_quantize_flags(command, self->plan);
  add_threads_flag(command, self->plan);
  command.callback([self] { self->run(); });
}

}  // namespace command
