#include "data/label_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/failure.h"
#include "base/handles.h"
#include "base/messages.h"
#include "base/units.h"
#include "base/utf8.h"
#include "data/label_checks.h"
#include "data/label_targets.h"
#include "data/label_words.h"
#include "data/new_head.h"
#include "data/tagged.h"

namespace command {

// Refuses names of --label-names that are not those of the model.
static void require_own_names(const DataFlags& data, const std::vector<std::string>& own) {
  if (!data.label_names.empty() && data.label_names != own)
    throw Failure(exit_usage, fmt::format("--label-names: the model already has other labels, {}; "
                                          "--new-head draws a new head for these names",
                                          count_and_labels(own)));
}

// Refuses names of --label-names that are there twice, or that are numbers.
static void check_different(const std::vector<std::string>& names, bool may_be_numbers) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    const bool is_number = !may_be_numbers && looks_like_number(name);
    if (is_number || !seen.insert(name).second)
      throw Failure(exit_usage, fmt::format("--label-names: expected different names, found \"{}\"{}", name,
                                            is_number ? ", a number" : " twice"));
  }
}

// Gives a model without labels the labels of the words in the data.
static void take_tags(ModelFlags& model, const DataFlags& data) {
  check_different(data.label_names, true);
  ModelFlags tagger = model, as_it_is = model;
  as_it_is.task.clear();
  tagger.task = "tokens";
  const auto find_labels = [&] {
    tagger.labels =
        data.label_names.empty() ? tags_of(read_tagged(data.source, data.fields, true)) : data.label_names;
    if (tagger.labels.size() < 2)
      throw Failure(exit_failed,
                    fmt::format("{}: all words have the label \"{}\"; expected two labels or more", data.path,
                                shortened(tagger.labels[0])));
  };
  bool has_labels = false;
  try {
    has_labels = query(open_model(as_it_is)).labels > 0;
  } catch (const Failure&) {  // weights without a head are enough: the tagger gets a new one
    find_labels();
    try {
      open_model(tagger);
    } catch (const Failure&) {
      open_model(as_it_is);  // throws a message about the model as it was given
      throw;
    }
  }
  if (has_labels && !model.new_head) {
    const std::vector<std::string> own = labels_of(open_model(as_it_is));
    require_own_names(data, own);
    const std::vector<TaggedText> texts = read_tagged(data.source, data.fields, true);
    with_advice([&] { tag_numbers(texts, own); });
    return;
  }
  if (tagger.labels.empty()) find_labels();
  model = std::move(tagger);
}

namespace {

uint32_t task_for(const ModelFlags& model, const DataFlags& data, std::span<const LabelledText> texts) {
  if (model.task == "number" && !data.label_names.empty())
    throw Failure(exit_usage, "--label-names: is for labels, and --task number learns numbers");
  if (!model.task.empty()) return task_number(model.task);
  if (data.label_names.empty()) return task_of(texts, data.path);
  const bool has_lists =
      std::any_of(texts.begin(), texts.end(), [](const LabelledText& text) { return text.is_list; });
  return has_lists ? STW_TASK_LABELS : STW_TASK_LABEL;
}

// Checks the names of --label-names.
void check_label_names(const std::vector<std::string>& names, uint32_t task,
                       std::span<const LabelledText> texts) {
  check_different(names, false);
  if (names.size() < 2)
    throw Failure(exit_usage, "--label-names: expected two names or more, with commas between them");
  const auto width = task == STW_TASK_LABELS ? ones_and_zeros(texts) : std::nullopt;
  if (width && *width != names.size())
    throw Failure(exit_usage,
                  fmt::format("--label-names: expected {} names, one for each of the ones and zeros in {}, "
                              "found {}",
                              *width, texts[0].place, names.size()));
}

// Refuses a --label-separator that separates nothing, because it may be the wrong one.
void check_separator(const ModelFlags& model, const DataFlags& data, std::span<const LabelledText> texts) {
  if (data.fields.separator.empty() || model.task == "labels") return;
  if (std::any_of(texts.begin(), texts.end(),
                  [](const LabelledText& text) { return text.labels.size() > 1; }))
    return;
  throw Failure(exit_usage,
                fmt::format("--label-separator \"{}\": no field \"{}\" of {} has it; leave it out "
                            "to learn one label of a text, or say --task labels",
                            data.fields.separator, data.fields.label, data.path));
}

// The model with a head for the labels or numbers of the data.
ModelFlags with_head_for(const ModelFlags& model, const DataFlags& data,
                         std::span<const LabelledText> texts) {
  const std::string& path = data.path;
  ModelFlags made = model;
  const uint32_t task = task_for(model, data, texts);
  const auto is_list =
      std::find_if(texts.begin(), texts.end(), [](const LabelledText& text) { return text.is_list; });
  if (task == STW_TASK_LABEL && is_list != texts.end())
    throw Failure(
        exit_failed,
        fmt::format("{}: has a list of labels, and --task label learns one; --task labels learns several",
                    is_list->place));
  if (task == STW_TASK_LABELS && is_list == texts.end() && data.source.is_table())
    throw Failure(exit_usage, fmt::format("--data {}: --task labels of a .csv file needs --label-separator: "
                                          "the text between the labels of a field",
                                          path));
  made.task = task == STW_TASK_LABELS ? "labels" : task == STW_TASK_NUMBER ? "number" : "label";
  if (task == STW_TASK_NUMBER) {
    made.label_count = numbers_of_each(texts);
    return made;
  }
  if (!data.label_names.empty()) {
    check_label_names(data.label_names, task, texts);
    made.labels = data.label_names;
    return made;
  }
  if (task == STW_TASK_LABELS) check_lists(texts, path);
  made.labels = labels_of(texts);
  check_names(made.labels, path);
  if (task == STW_TASK_LABELS && made.labels.empty())
    throw Failure(exit_failed, fmt::format("{}: no text has a label", path));
  check_count(made.labels.size(), texts.size(), path);
  if (model.task.empty() && std::all_of(made.labels.begin(), made.labels.end(), looks_like_number))
    complain("stowage: warning: {}: its {} labels are numbers, and are learned as names without an order{}",
             path, grouped(made.labels.size()),
             task == STW_TASK_LABEL ? "; --task number learns them as numbers" : "");
  return made;
}

bool has_label_task(const ModelFlags& model) {
  return model.task.empty() || model.task == "label" || model.task == "labels" || model.task == "number";
}

}  // namespace

// Refuses a task that is not the one of the model's head. `task`: a value of --task.
static void require_own_task(const ModelFlags& model, const std::string& task, const std::string& asked_by) {
  if (model.new_head || task.empty()) return;
  ModelFlags alone = model, other = model;
  alone.task.clear();
  other.task = task;
  stw_model_info about;
  try {
    about = query(open_model(alone));
  } catch (const Failure&) { return; }  // opening it for training reports the problem
  if (about.labels == 0 || about.task == task_number(task)) return;
  try {
    open_model(other);  // a config may leave the task of its labels open
  } catch (const Failure&) {
    throw Failure(
        exit_usage,
        fmt::format("{} {} has a head for the task {}; {}", asked_by, model.source, name_of_task(about.task),
                    task == "masked"
                        ? "begin with a model without it, such as the one that it was trained from"
                        : "--new-head draws a new one"));
  }
}

// A model that finds no answers yet gets the head for it.
static void take_span_head(ModelFlags& model, const DataFlags& data) {
  if (model.new_head) model.task = "spans";
  if (!model.task.empty()) return;
  require_own_task(model, "spans", fmt::format("--data {}: has questions, and", data.path));
  try {
    if (query(open_model(model)).task == STW_TASK_SPANS) return;
  } catch (const Failure&) {  // weights without a head are enough
  }
  model.task = "spans";
}

void take_labels(ModelFlags& model, const DataFlags& data) {
  require_own_task(model, model.task, fmt::format("--task {}:", model.task));
  if (data.has_questions) return take_span_head(model, data);
  if (data.has_tags) return take_tags(model, data);
  if (!data.has_labels && !model.task.empty() && has_label_task(model))
    throw Failure(exit_usage, fmt::format("--task {}: --data {} has no labels: expected a .csv file, or a "
                                          ".jsonl file of texts that have a \"{}\"",
                                          model.task, data.path, data.fields.label));
  if (model.new_head && (!data.has_labels || !has_label_task(model)))
    throw Failure(exit_usage, fmt::format("--new-head: is for texts or words with labels, and --data {} has "
                                          "none for the task",
                                          data.path));
  if (!data.has_labels || !has_label_task(model)) return;
  const std::vector<LabelledText> texts = read_labelled(data.source, data.fields, ReadPurpose::labels);
  ModelFlags alone = model;
  alone.task.clear();
  bool is_there = true;
  std::vector<std::string> own;  // the model's own labels
  uint32_t task = STW_TASK_AUTOMATIC;
  try {
    const Model opened = open_model(alone);
    own = labels_of(opened), task = query(opened).task;
  } catch (const Failure&) {  // weights without a head are enough: the classifier gets a new one
    is_there = false;
  }
  if (!own.empty() && !model.new_head) {
    require_own_names(data, own);
    if (model.task.empty()) with_advice([&] { require_labels(texts, own, task); });
    return;
  }
  check_separator(model, data, texts);
  ModelFlags made = with_head_for(model, data, texts);
  if (made.task == "label" && made.labels.size() < 2) {
    if (!is_there) open_model(alone);  // throws a message about the model as it was given
    throw Failure(exit_failed, fmt::format("{}: all texts have the label \"{}\"; expected two labels or more",
                                           data.path, shortened(made.labels[0])));
  }
  if (!is_there) {
    try {
      open_model(made);
    } catch (const Failure&) { open_model(alone); }
  }
  model = std::move(made);
}

}  // namespace command
