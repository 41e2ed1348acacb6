#include "data/data_flags.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/failure.h"
#include "base/handles.h"
#include "base/kept_options.h"
#include "base/messages.h"
#include "base/utf8.h"
#include "data/pairs.h"
#include "data/tagged.h"
#include "data/text_pairs.h"
#include "data/token_files.h"
#include "data/tokenization.h"

namespace command {

void add_data_flags(CLI::App& command, DataFlags& flags) {
  command
      .add_option(
          "--data", flags.files,
          "Files of one kind, folders of them, patterns such as 'data/*.jsonl', or a pipe: texts in UTF-8, "
          "or\n"
          "JSON of examples, one a line or in an array: {\"prompt\": …, \"completion\": …}, {\"messages\": "
          "[…]} or {\"text\": …};\n"
          "JSON of pairs of answers: {\"prompt\": …, \"chosen\": …, \"rejected\": …};\n"
          "tables (.csv, .tsv) with columns of these names;\n"
          "tables with the columns text and label, or JSON of {\"text\": …, \"label\": …}, for a classifier, "
          "or with\n"
          "a list {\"text\": …, \"labels\": […]}; labels may be numbers to learn;\n"
          "SQuAD's JSON of questions and contexts, or JSON of {\"question\": …, \"context\": …, "
          "\"answers\": …}, for answers in contexts;\n"
          ".conll of words and tags, or JSON of {\"tokens\": […], \"tags\": […]}, for labels of words;\n"
          ".bin of token ids, little-endian uint16, or uint32 where the vocabulary exceeds 65,536 "
          "(--token-type);\n"
          ".npy of token ids, a NumPy array of one dimension.")
      ->required()
      ->check(not_empty())
      ->expected(1, -1)
      ->type_name("FILE...");
  add_data_format_flag(command, flags.format);
  add_field_flags(command, flags.fields, true);
  add_mask_flags(command, flags.mask);
  add_question_flags(command, flags.questions);
  add_tokenizer_flag(command, flags.tokenizer);
  command
      .add_option("--token-type", flags.token_type,
                  "How a .bin file stores its ids, little-endian. Default: see --data.")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(token_types), std::end(token_types))))
      ->type_name("auto|uint16|uint32|int32|int64");
  add_chat_template_flag(command, flags.chat_template);
}

void add_field_flags(CLI::App& command, LabelFields& fields, bool with_labels) {
  const auto add = [&](const char* flag, std::string& name, bool& given, const char* description) {
    command
        .add_option_function<std::string>(
            flag,
            [&name, &given](const std::string& value) {
              name = value;
              given = true;
            },
            description)
        ->check(not_empty())
        ->type_name("NAME");
  };
  add("--text-field", fields.text, fields.text_given,
      "The column of a table, or the member of JSON objects, that has the text or its words. Default: "
      "text; for words\ntokens or words. In .conll files: the number of the column of words (1 is the first "
      "one, -1 the last one),\nor its name in CoNLL-U, such as FORM. Default: the column that is certain, "
      "else the first one.");
  add("--pair-field", fields.pair, fields.pair_given,
      "The column, or member, that has the second text of a pair; none: texts are no pairs. Default: "
      "text_pair, or the\npartner of the text's name, such as hypothesis of premise.");
  if (with_labels)
    add("--label-field", fields.label, fields.label_given,
        "The column, or member, that has the text's label: a language model becomes a classifier of all "
        "labels there.\n"
        "Default: label, in .jsonl files also labels; for words tags, ner_tags or labels. In .conll files: "
        "the number of the\ncolumn of tags, or in CoNLL-U its name, such as UPOS, or that of an entry, such "
        "as "
        "MISC:name.\nDefault: the one column of tags.");
  if (with_labels)
    command
        .add_option("--label-separator", fields.separator,
                    "The text between several labels in one field of a .csv file, such as \"|\". Default: a "
                    "field is one label.")
        ->check(not_empty())
        ->type_name("TEXT");
}

void add_tail_flag(CLI::App& command, DataFlags& flags) {
  command.add_flag("--eval-tail", flags.holds_out_tail,
                   "Hold out the last tenth of the examples in the order of --data. Default: examples are "
                   "first shuffled by a fixed seed.");
}

void add_label_names_flag(CLI::App& command, DataFlags& flags) {
  command
      .add_option("--label-names", flags.label_names,
                  "Names of the labels, or of the tags of words, in the order of their numbers, or of lists "
                  "of ones and\n"
                  "zeros. Default: the labels in the data.")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(not_empty())
      ->type_name("NAME,...");
}

void take_columns_of_run(LabelFields& fields, const std::string& run) {
  if (run.empty()) return;
  fields.run_text = setting_of_run(run, "text-field").value_or("");
  fields.run_label = setting_of_run(run, "label-field").value_or("");
}

// Whether the model's config has this task. False if it cannot be opened: opening it for training reports
// the problem.
static bool has_task(const ModelFlags& model, uint32_t task) {
  try {
    return query(open_model(model)).task == task;
  } catch (const Failure&) { return false; }
}
static bool is_masked(const ModelFlags& model) { return has_task(model, STW_TASK_MASKED_LANGUAGE_MODEL); }

// Refuses an encoder for data from which only a language model can learn. If the model has labels,
// examples_of() reports that the data has none.
static void refuse_encoder(const ModelFlags& model, const DataFlags& data) {
  ModelFlags as_masked = model;
  as_masked.task = "masked", as_masked.label_count = 0;
  try {
    const stw_model_info about = query(open_model(model));
    if (about.generates || about.labels > 0) return;
  } catch (const Failure&) {
    try {
      if (query(open_model(as_masked)).generates) return;
    } catch (const Failure&) {  // opening it for training reports the problem
      return;
    }
  }
  const char* const what = data.has_pairs                 ? "pairs of answers"
                           : data.source.holds_examples() ? "examples without labels"
                           : data.source.has_tokens()     ? "token ids"
                                                          : "text without labels";
  throw Failure(exit_failed,
                fmt::format("--data {}: has {}, and {} is an encoder, which does not generate text: give it "
                            "texts with labels (\"text\" and \"label\"; --label-field names another), words "
                            "with tags, or plain texts with --task masked",
                            data.path, what, model.source));
}

// Finds the two texts of pairs. JSON without labels holds examples, unless hidden tokens are learned.
static void find_texts(DataFlags& data, const ModelFlags& model) {
  const DataSource& source = data.source;
  const bool is_of_examples = source.is_table_of_examples() && !data.fields.label_given;
  const bool may_be = !data.has_tags && (source.is_table() || source.holds_objects()) && !is_of_examples;
  const bool has_texts = may_be && (source.is_table() || has_label_member(source, data.fields) ||
                                    model.task == "masked" || (model.task.empty() && is_masked(model)));
  if (has_texts) return find_pair(source, data.fields);
  if (data.fields.pair_given)
    throw Failure(exit_usage, fmt::format("--pair-field {}: is for texts with labels, and --data {} has none",
                                          data.fields.pair, data.path));
}

// Recognises questions. Refuses flags that are not for them.
static void find_questions(const PlanFlags& plan, DataFlags& data, const ModelFlags& model) {
  // Questions without answers, too, then count as questions: reading them names what is missing.
  const bool is_asked_for =
      model.task == "spans" || (model.task.empty() && !model.new_head && has_task(model, STW_TASK_SPANS));
  data.has_questions = (is_asked_for || model.task.empty()) && holds_questions(data.source, is_asked_for);
  if (is_asked_for && !data.has_questions)
    throw Failure(
        exit_usage,
        fmt::format("{}: expected SQuAD's JSON, or JSON of {{\"question\": …, \"context\": …, \"answers\": "
                    "{{\"text\": […], \"answer_start\": […]}}}}, as --data {}",
                    model.task.empty() ? model.source + " finds answers in contexts" : "--task spans",
                    data.path));
  if (!data.has_questions) {
    if (data.questions.any())
      throw Failure(exit_usage, fmt::format("--doc-stride, --skip-bad-questions, --n-best, "
                                            "--max-answer-length and --null-threshold: are for questions "
                                            "(--task spans), and --data {} has none",
                                            data.path));
    return;
  }
  const LabelFields& fields = data.fields;
  const char* const flag = fields.text_given           ? "--text-field"
                           : fields.label_given        ? "--label-field"
                           : fields.pair_given         ? "--pair-field"
                           : !fields.separator.empty() ? "--label-separator"
                           : !data.label_names.empty() ? "--label-names"
                           : data.mask.rate            ? "--mask-rate"
                           : data.mask.whole_words     ? "--mask-whole-words"
                                                       : nullptr;
  if (flag) throw Failure(exit_usage, fmt::format("{}: is not for questions (--data {})", flag, data.path));
  if (plan.preference != "auto")
    throw Failure(exit_usage,
                  fmt::format("--preference {}: is for pairs of answers, and --data {} has questions",
                              plan.preference, data.path));
  if (plan.document_end)
    throw Failure(exit_usage, "--document-end: is for language models; questions are documents in any case");
}

void find_examples(PlanFlags& plan, DataFlags& data, const ModelFlags& model) {
  data.source = DataSource(data.files, reading_of(data));
  data.path = data.source.name();
  plan.examples = data.source.holds_examples();
  if (data.source.is_conll()) take_columns_of_run(data.fields, data.columns_of_run);
  const LabelFields& fields = data.fields;
  if (!plan.examples && (fields.text_given || fields.label_given || fields.pair_given))
    throw Failure(exit_usage,
                  fmt::format("--{}-field: is for .csv, .jsonl and .conll files, and --data {} is not one",
                              fields.label_given  ? "label"
                              : fields.pair_given ? "pair"
                                                  : "text",
                              data.path));
  if (data.token_type != "auto" && !data.source.has_tokens())
    throw Failure(exit_usage, fmt::format("--token-type {}: is for files of token ids (.bin, or "
                                          "--data-format tokens), and --data {} is not one",
                                          data.token_type, data.path));
  require_downloaded(data.source);
  require_content(data.source);
  find_questions(plan, data, model);
  if (data.has_questions) return;
  data.has_tags = holds_tags(data.source, data.fields);
  if (model.task == "tokens" && !data.has_tags)
    throw Failure(exit_usage, fmt::format("--task tokens: is for words and tags; expected a .conll file, or "
                                          "a .jsonl file of {{\"tokens\": […], \"tags\": […]}} as --data {}",
                                          data.path));
  if (!model.task.empty() && model.task != "tokens" && data.has_tags)
    throw Failure(exit_usage,
                  fmt::format("--task {}: --data {} has tags of words, which are for --task tokens",
                              model.task, data.path));
  if (!data.fields.separator.empty() && !data.source.is_table())
    throw Failure(exit_usage,
                  fmt::format("--label-separator: is for .csv files, and --data {} is not one", data.path));
  find_texts(data, model);
  data.has_labels = !data.has_tags && holds_labels(data.source, data.fields);
  if (!data.label_names.empty() && !data.has_tags && !data.has_labels)
    throw Failure(exit_usage,
                  fmt::format("--label-names: is for labels and tags, and --data {} has none", data.path));
  data.has_pairs = holds_pairs(data.source);
  data.masks = model.task == "masked" || (model.task.empty() && !data.has_labels && !data.has_tags &&
                                          !data.has_pairs && is_masked(model));
  if (model.task == "label" && !data.has_labels)
    throw Failure(
        exit_usage,
        fmt::format(
            "--task label: expected a .csv or .jsonl file of texts with labels, and --data {} has no labels",
            data.path));
  if (data.masks) {
    data.has_labels = data.has_pairs = false;
    if (plan.document_end)
      throw Failure(
          exit_usage,
          "--document-end: is for language models; texts with hidden tokens are documents in any case");
    if (data.fields.label_given)
      throw Failure(
          exit_usage,
          "--label-field: is for texts with labels, and a masked language model looks at texts alone");
  } else if (data.mask.rate || data.mask.whole_words) {
    throw Failure(exit_usage, fmt::format("--mask-{}: is for masked language models (--task masked)",
                                          data.mask.rate ? "rate" : "whole-words"));
  }
  if (!data.has_pairs && plan.preference != "auto")
    throw Failure(exit_usage,
                  fmt::format("--preference {}: is for a .jsonl file of pairs of answers, {{\"prompt\": …, "
                              "\"chosen\": …, \"rejected\": …}}; --data {} is not one",
                              plan.preference, data.path));
  if (data.has_pairs && plan.preference == "auto") plan.preference = "dpo";
  if (model.task.empty() && !data.has_labels && !data.has_tags && !data.masks) refuse_encoder(model, data);
  if (data.has_pairs && data.fields.text_given)
    throw Failure(exit_usage,
                  fmt::format("--text-field: is for texts; --data {} has pairs of answers", data.path));
  if (!plan.examples || data.has_labels || data.has_tags || data.masks || plan.document_end) return;
  const std::vector<int32_t> ends = end_tokens(run_of(model));
  if (!ends.empty()) plan.document_end = static_cast<uint32_t>(ends[0]);
}

void require_pairs(const PreferenceFlags& preference, const DataFlags& data) {
  for (const auto& [flag, given] : {std::pair{"--beta", preference.beta},
                                    {"--margin", preference.margin},
                                    {"--answer-share", preference.answer_share}})
    if (given && !data.has_pairs)
      throw Failure(exit_usage,
                    fmt::format("{}: is for pairs of answers, and --data {} has no pairs", flag, data.path));
}

DataReading reading_of(const DataFlags& flags) {
  return {flags.format, flags.fields.text, flags.fields.label, flags.tokenizer == "ids",
          flags.tokenizer == "byte"};
}

}  // namespace command
