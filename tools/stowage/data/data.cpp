#include "data/data.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/downloads.h"
#include "base/files.h"
#include "base/messages.h"
#include "base/repeated.h"
#include "base/units.h"
#include "base/utf8.h"
#include "base/work_line.h"
#include "data/pairs.h"
#include "data/tagged.h"

namespace command {
namespace {

constexpr const char* token_types[] = {"auto", "uint16", "uint32", "int32", "int64"};  // STW_TOKEN_TYPE_*

uint32_t type_number(const std::string& name) {
  return static_cast<uint32_t>(std::find(std::begin(token_types), std::end(token_types), name) -
                               std::begin(token_types));
}

// Holds bytes in a temporary file without a name, which disappears with the process.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes) : file_(std::tmpfile()) {
    if (!file_ || write_all(bytes, file_) != bytes.size() || std::fflush(file_) != 0)
      throw Failure(exit_failed, fmt::format("cannot write {} bytes of tokens into a temporary file: {}",
                                             grouped(bytes.size()), std::strerror(errno)));
  }
  ~TemporaryFile() {
    if (file_) std::fclose(file_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  std::string path() const { return fmt::format("/dev/fd/{}", ::fileno(file_)); }

 private:
  std::FILE* file_;
};

// The files and options of a dataset, kept so that it can be opened again.
struct DatasetFiles {
  std::optional<TemporaryFile> tokens, marks, labels;
  std::string file, path, marks_path, labels_path;  // file: the name in messages to the user
  std::optional<Masks> masks;
  stw_dataset_options options = sized<stw_dataset_options>();

  Dataset open() const {
    stw_dataset* data = nullptr;
    stw_dataset_options now = options;
    const auto open = [&](stw_error* error) { return stw_dataset_open(&data, &now, error); };
    try {
      long_call(open);
    } catch (const Failure& failure) {
      if (failure.status == STW_BAD_STATE) throw;
      std::string message = failure.what();
      if (const size_t at = message.find(path); at != std::string::npos)
        message.replace(at, path.size(), file);
      for (size_t at = 0; (at = message.find("token_type", at)) != std::string::npos; at += 12)
        message.replace(at, 10, "--token-type");
      if (failure.status == STW_BAD_ARGUMENT)
        throw Failure(exit_failed, message);  // the content of the file is wrong
      if (failure.status != STW_CORRUPT)
        throw Failure(failure.exit_code, message);  // such as a disk that fails
      // If windows of one token can be opened, the file is only too short for the window length.
      now.sequence = 1;
      if (open(nullptr) != STW_OK) throw Failure(failure.exit_code, message);
      stw_dataset_close(data);
      throw Failure(failure.exit_code, message + "; use a shorter --seq");
    }
    return Dataset(data);
  }
};

// Refuses web pages and error messages that were downloaded in place of examples. Warns of a web page that is
// trained on as text.
void require_downloaded(const DataSource& data) {
  constexpr size_t looked_at = 4096;
  for (const DataFile& file : data.files()) {
    const std::string beginning = file.is_regular ? beginning_of(file.path, looked_at) : "";
    if (beginning.empty()) continue;  // reading it reports the problem
    const Download kind = kind_of_download(beginning, beginning.size());
    const bool is_one_line =
        beginning.size() < looked_at && std::count(beginning.begin(), beginning.end(), '\n') < 2;
    if (data.holds_examples() &&
        (kind == Download::web_page || (kind == Download::error_message && is_one_line)))
      throw Failure(exit_failed, fmt::format("{}: {}", file.path, description_of(kind)));
    if (kind == Download::web_page && !data.has_tokens())
      complain("stowage: warning: {}: looks like a web page, whose markup is trained on too", file.path);
  }
}

// Warns if a chat template writes no token from which the model can learn to end its answer.
void warn_of_endless_turns(const chat::ChatTemplate& conversations, const DataRequest& request) {
  static std::string warned_of;  // the template of the last warning: each is warned of once
  if (warned_of == conversations.path() || request.tokenization.kind() == Tokenization::Kind::ids) return;
  warned_of = conversations.path();
  std::string end;
  try {
    end = conversations.end_of_answer("--chat-template");
  } catch (const Failure&) {  // the template refuses so short a conversation
    return;
  }
  const std::vector<int32_t> tokens = request.tokenization.encode(end, "--chat-template", true),
                             ends = end_tokens(run_of(request.flags));
  const bool is_of_bytes = request.tokenization.kind() == Tokenization::Kind::bytes;
  const auto may_end = [&](int32_t token) {
    return std::find(ends.begin(), ends.end(), token) != ends.end() ||
           (is_of_bytes ? token > ' ' : !request.tokenization.has_text(token));
  };
  if (std::any_of(tokens.begin(), tokens.end(), may_end)) return;
  complain(
      "stowage: warning: {}: writes no end-of-turn token after an answer, but {}: the model does not learn "
      "where an answer ends, and `generate --chat` goes on up to --tokens",
      conversations.path(), end.empty() ? "nothing" : json_quoted(end));
}

// The token that ends every example.
int32_t end_of_examples(const std::string& path, const DataRequest& request) {
  const std::optional<uint32_t> end = request.document_end;
  const uint64_t vocabulary = query(request.model).vocabulary;
  if (!end)
    throw Failure(exit_usage, fmt::format("{}: {} has no end of text (eos_token_id); name the token that "
                                          "ends an example with --document-end",
                                          path, request.flags.source));
  if (*end >= vocabulary)
    throw Failure(exit_usage, fmt::format("{}: token {}, which ends an example, is outside of the model's "
                                          "vocabulary of {}; name another with --document-end",
                                          path, *end, grouped(vocabulary)));
  return static_cast<int32_t>(*end);
}

// Opens the held-out pairs, which are the last ones, from files of their own. Null if there are none.
std::shared_ptr<const OpenData::HeldOutPairs> held_out_pairs_of(const OpenData& all, const Examples& examples,
                                                                const DatasetFiles& of_all,
                                                                uint64_t vocabulary) {
  const stw_dataset_info info = query(all.dataset);
  if (info.evaluation_tokens == 0) return nullptr;
  const auto pairs = std::make_shared<OpenData::HeldOutPairs>();
  pairs->first_token = info.training_tokens;
  auto answer = all.answers.begin();
  for (uint64_t token = 0; token < info.training_tokens; ++answer) token += answer->tokens;
  pairs->answers.assign(answer, all.answers.end());
  DatasetFiles files;
  files.tokens.emplace(token_file(std::span(examples.tokens).subspan(info.training_tokens), vocabulary));
  files.marks.emplace(examples.marks.substr(info.training_tokens));
  files.file = of_all.file, files.path = files.tokens->path(), files.marks_path = files.marks->path();
  files.options = of_all.options;
  files.options.path = files.path.c_str(), files.options.marks = files.marks_path.c_str(),
  files.options.reference = nullptr;
  files.options.set_mask |= STW_SET_HELD_OUT;
  files.options.held_out = 1;
  pairs->dataset = files.open();
  return pairs;
}

}  // namespace

size_t bytes_of_type(const std::string& name, uint64_t vocabulary) {
  return name == "auto"     ? static_cast<size_t>(token_bytes(vocabulary))
         : name == "int64"  ? 8
         : name == "uint16" ? 2
                            : 4;
}

namespace {

constexpr std::string_view numpy_magic = "\x93NUMPY";

// The parts of a NumPy array that are needed to join arrays. The library checks the joined array.
struct NumpyArray {
  std::string type;  // as its header writes it: "<u2"
  size_t width = 0;  // bytes of a number
  std::string_view data;
};

// The bytes of an array of one dimension. Format:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
NumpyArray numpy_array(std::string_view content, const std::string& path) {
  const auto damaged = [&] {
    return Failure(exit_failed, fmt::format("{}: a NumPy array whose header is damaged", path));
  };
  if (content.size() < 12) throw damaged();
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(content[i])); };
  const size_t front = byte(6) == 1 ? 10 : 12,
               length = byte(8) | byte(9) << 8 | (byte(6) == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > content.size() - front) throw damaged();
  std::string header(content.substr(front, length));
  std::erase(header, ' ');
  std::replace(header.begin(), header.end(), '"', '\'');
  constexpr std::string_view key = "'descr':'";
  const size_t at = header.find(key), end = at == std::string::npos ? at : header.find('\'', at + key.size());
  if (end == std::string::npos || end == at + key.size()) throw damaged();
  NumpyArray array{header.substr(at + key.size(), end - at - key.size()), 0, content.substr(front + length)};
  const char digit = array.type.back();
  if (digit < '1' || digit > '8')
    throw Failure(exit_failed,
                  fmt::format("{}: a NumPy array of type \"{}\", whose numbers are not token ids", path,
                              shortened(array.type)));
  array.width = static_cast<size_t>(digit - '0');
  if (array.data.size() % array.width != 0 ||
      header.find(fmt::format("'shape':({},)", array.data.size() / array.width)) == std::string::npos)
    throw Failure(
        exit_failed,
        fmt::format("{}: expected a NumPy array of one dimension, with as many numbers as its header says",
                    path));
  return array;
}

// The header of such an array, as numpy.save writes it.
std::string numpy_header(const std::string& type, size_t count) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", type, count);
  header.append(63 - (header.size() + 10) % 64, ' ') += '\n';
  const auto byte = [&](size_t shift) { return static_cast<char>(header.size() >> shift & 255); };
  return std::string(numpy_magic) + '\x01' + '\x00' + byte(0) + byte(8) + header;
}

}  // namespace

std::string tokens_of_files(const DataSource& data, const DataRequest& request, uint64_t vocabulary,
                            const std::string& token_type) {
  const bool has_ids = request.tokenization.kind() == Tokenization::Kind::ids;
  auto width = has_ids ? bytes_of_type(token_type, vocabulary) : static_cast<size_t>(token_bytes(vocabulary));
  std::string all, array_type;  // empty: no arrays
  for (size_t i = 0; i < data.files().size(); ++i) {
    const std::string& path = data.files()[i].path;
    std::string_view content = data.content(i);
    const bool is_array = has_ids && content.starts_with(numpy_magic);
    if (has_ids && i > 0 && is_array == array_type.empty())
      throw Failure(
          exit_failed,
          fmt::format("{}: {} a NumPy array, and {} {}; files of one kind are read together", path,
                      is_array ? "is" : "is not", data.files()[0].path, is_array ? "is not" : "is"));
    if (is_array && data.files().size() > 1) {
      const NumpyArray array = numpy_array(content, path);
      if (i > 0 && array.type != array_type)
        throw Failure(
            exit_failed,
            fmt::format(
                "{}: its ids are {}, and those of {} are {}; write them with one type: array.astype('{}')",
                path, shortened(array.type), data.files()[0].path, array_type, array_type));
      array_type = array.type, width = array.width, content = array.data;
    } else if (has_ids && !is_array && content.size() % width != 0) {
      throw Failure(exit_failed, fmt::format("{}: expected token ids of {} bytes each, found {} bytes", path,
                                             width, grouped(content.size())));
    }
    if (has_ids) all += content;
    else all += token_file(request.tokenization.encode(std::string(content), path), vocabulary);
    data.forget();
    if (!request.document_end || i + 1 == data.files().size()) continue;
    std::string end =
        token_file(std::vector<int32_t>{static_cast<int32_t>(*request.document_end)}, vocabulary);
    if (width < 4 && *request.document_end >> 8 * width != 0)
      throw Failure(exit_usage, fmt::format("--document-end {}: does not fit the ids of {} bits of {}",
                                            *request.document_end, 8 * width, path));
    end.resize(width, '\0');
    if (all.size() < width || all.compare(all.size() - width, width, end) != 0) all += end;
  }
  return array_type.empty() ? all : numpy_header(array_type, all.size() / width) + all;
}

std::optional<Examples> examples_of(const DataFlags& flags, const DataSource& data,
                                    const DataRequest& request, std::optional<Masks>& masks) {
  const std::string& path = data.name();
  const bool is_own = &data == &flags.source;
  const Order order = flags.holds_out_tail ? Order::of_file : Order::shuffled;
  if (!is_own) require_downloaded(data);
  const bool has_tags = is_own ? flags.has_tags : holds_tags(data, flags.fields);
  const stw_model_info about = query(request.model);
  if (about.task == STW_TASK_TOKEN_LABEL) {
    if (!has_tags)
      throw Failure(exit_failed,
                    fmt::format("{}: the model gives each word one of {} labels: expected a .conll file, or "
                                "a .jsonl file of words and tags, {{\"tokens\": […], \"tags\": […]}}",
                                path, grouped(about.labels)));
    return tagged_examples(read_tagged(data, flags.fields, true), labels_of(request.model),
                           request.tokenization, about, request.sequence, order);
  }
  if (has_tags)
    throw Failure(exit_failed, fmt::format("{}: its words have tags, and {} gives words no labels", path,
                                           request.flags.source));
  if (flags.masks) {
    masks.emplace();
    return read_masked(data, flags.fields, flags.mask, request.tokenization, query(request.model).vocabulary,
                       request.sequence, order, *masks);
  }
  const bool has_labels = is_own ? flags.has_labels : holds_labels(data, flags.fields);
  if (const std::vector<std::string> labels = labels_of(request.model); !labels.empty()) {
    if (!has_labels) {
      const bool is_number = query(request.model).task == STW_TASK_NUMBER;
      throw Failure(
          exit_failed,
          fmt::format(
              "{}: the model {} {} {}{}: expected a .csv or .jsonl file of texts that have one (\"{}\")",
              path, is_number ? "gives texts" : "is a classifier with", grouped(labels.size()),
              is_number ? "number" : "label", labels.size() == 1 ? "" : "s", flags.fields.label));
    }
    return label_examples(read_labelled(data, flags.fields, ReadPurpose::labels), labels,
                          request.tokenization, query(request.model), request.sequence, order);
  }
  if (has_labels)
    throw Failure(exit_failed, fmt::format("{}: its texts have labels, and {} is a language model", path,
                                           request.flags.source));
  const bool has_pairs = is_own ? flags.has_pairs : holds_pairs(data);
  if (has_pairs != flags.has_pairs)
    throw Failure(exit_failed, fmt::format("{}: it has {}pairs of answers, {} has {}", path,
                                           has_pairs ? "" : "no ", flags.path, has_pairs ? "none" : "some"));
  if (!data.holds_examples()) return std::nullopt;
  std::optional<chat::ChatTemplate> conversations;  // read at the first conversation
  const auto chat_template = [&](const std::string& place) -> const chat::ChatTemplate& {
    if (!conversations)
      conversations = chat_template_of(flags.chat_template, request.tokenization, run_of(request.flags));
    if (!conversations) throw no_chat_template(place);
    return *conversations;
  };
  const FindTemplate find_template = chat_template;
  const ExampleReader reader(flags.fields.text, request.tokenization, find_template,
                             end_of_examples(path, request), request.sequence);
  Examples examples = has_pairs ? read_pairs(data, reader, request.sequence, order)
                                : read_examples(data, reader, request.sequence, order);
  if (conversations && is_own) warn_of_endless_turns(*conversations, request);
  return examples;
}

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
      "Of a table or of JSON: the column, or member, that has the text, or its words. Default: text; of "
      "words\ntokens or words.");
  if (with_labels)
    add("--label-field", fields.label, fields.label_given,
        "The column, or member, that has the text's label: a language model becomes a classifier of all "
        "labels there.\n"
        "Default: label, in .jsonl files also labels; of words tags, ner_tags or labels.");
  if (with_labels)
    command
        .add_option("--label-separator", fields.separator,
                    "Of a .csv file: the text between the labels of a field, such as \"|\". Default: a field "
                    "is one label.")
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
                  "Names of the tags of words, in the order of their numbers. Default: the tags in the data.")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(not_empty())
      ->type_name("NAME,...");
}

// Whether the model is a masked language model. False if it cannot be opened: opening it for training reports
// the problem.
static bool is_masked(const ModelFlags& model) {
  try {
    return query(open_model(model)).task == STW_TASK_MASKED_LANGUAGE_MODEL;
  } catch (const Failure&) { return false; }
}

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
                            "with tags, or texts to learn hidden tokens of (--task masked)",
                            data.path, what, model.source));
}

void find_examples(PlanFlags& plan, DataFlags& data, const ModelFlags& model) {
  data.source = DataSource(data.files, reading_of(data));
  data.path = data.source.name();
  plan.examples = data.source.holds_examples();
  if (!plan.examples && (data.fields.text_given || data.fields.label_given))
    throw Failure(exit_usage,
                  fmt::format("--{}-field: is for .csv and .jsonl files, and --data {} is not one",
                              data.fields.label_given ? "label" : "text", data.path));
  if (data.token_type != "auto" && !data.source.has_tokens())
    throw Failure(exit_usage, fmt::format("--token-type {}: is for files of token ids (.bin, or "
                                          "--data-format tokens), and --data {} is not one",
                                          data.token_type, data.path));
  require_downloaded(data.source);
  data.has_tags = holds_tags(data.source, data.fields);
  if (model.task == "tokens" && !data.has_tags)
    throw Failure(exit_usage, fmt::format("--task tokens: is for words and tags; expected a .conll file, or "
                                          "a .jsonl file of {{\"tokens\": […], \"tags\": […]}} as --data {}",
                                          data.path));
  if (!model.task.empty() && model.task != "tokens" && data.has_tags)
    throw Failure(exit_usage,
                  fmt::format("--task {}: --data {} has tags of words, which are for --task tokens",
                              model.task, data.path));
  if (!data.label_names.empty() && !data.has_tags)
    throw Failure(exit_usage,
                  fmt::format("--label-names: is for tags of words, and --data {} has no tags", data.path));
  if (!data.fields.separator.empty() && !data.source.is_table())
    throw Failure(exit_usage,
                  fmt::format("--label-separator: is for .csv files, and --data {} is not one", data.path));
  data.has_labels = !data.has_tags && holds_labels(data.source, data.fields);
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

// Gives a model without labels the labels of the words in the data.
static void take_tags(ModelFlags& model, const DataFlags& data) {
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
  if (has_labels) {
    if (!data.label_names.empty() && data.label_names != labels_of(open_model(model)))
      throw Failure(exit_usage, "--label-names: the model already has other labels");
    return;
  }
  if (tagger.labels.empty()) find_labels();
  model = std::move(tagger);
}

namespace {

// The model with a head for the labels or numbers of the data.
ModelFlags with_head_for(const ModelFlags& model, const DataSource& data,
                         std::span<const LabelledText> texts) {
  const std::string& path = data.name();
  ModelFlags made = model;
  const uint32_t task = model.task.empty() ? task_of(texts, path) : task_number(model.task);
  const auto is_list =
      std::find_if(texts.begin(), texts.end(), [](const LabelledText& text) { return text.is_list; });
  if (task == STW_TASK_LABEL && is_list != texts.end())
    throw Failure(
        exit_failed,
        fmt::format("{}: has a list of labels, and --task label learns one; --task labels learns several",
                    is_list->place));
  if (task == STW_TASK_LABELS && is_list == texts.end() && data.is_table())
    throw Failure(exit_usage, fmt::format("--data {}: --task labels of a .csv file needs --label-separator: "
                                          "the text between the labels of a field",
                                          path));
  made.task = task == STW_TASK_LABELS ? "labels" : task == STW_TASK_NUMBER ? "number" : "label";
  if (task == STW_TASK_NUMBER) made.label_count = numbers_of_each(texts);
  else made.labels = labels_of(texts);
  check_names(made.labels, path);
  if (task == STW_TASK_LABELS && made.labels.empty())
    throw Failure(exit_failed, fmt::format("{}: no text has a label", path));
  return made;
}

bool has_label_task(const ModelFlags& model) {
  return model.task.empty() || model.task == "label" || model.task == "labels" || model.task == "number";
}

}  // namespace

void take_labels(ModelFlags& model, const DataFlags& data) {
  if (data.has_tags) return take_tags(model, data);
  if (!data.has_labels && !model.task.empty() && has_label_task(model))
    throw Failure(exit_usage, fmt::format("--task {}: --data {} has no labels: expected a .csv file, or a "
                                          ".jsonl file of texts that have a \"{}\"",
                                          model.task, data.path, data.fields.label));
  if (!data.has_labels || !has_label_task(model)) return;
  const std::vector<LabelledText> texts = read_labelled(data.source, data.fields, ReadPurpose::labels);
  ModelFlags alone = model;
  alone.task.clear();
  bool is_there = true;
  try {
    if (query(open_model(alone)).labels > 0) return;
  } catch (const Failure&) {  // weights without a head are enough: the classifier gets a new one
    is_there = false;
  }
  ModelFlags made = with_head_for(model, data.source, texts);
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

namespace {

// The answers of pairs, by the marks of their tokens.
std::vector<OpenData::Answer> answers_by_marks(std::string_view marks) {
  std::vector<OpenData::Answer> answers;
  for (const char mark : marks) {
    if (mark & STW_MARK_BEGIN) answers.push_back({});
    answers.back().tokens += 1;
    answers.back().learned += (mark & STW_MARK_TARGET) != 0;
  }
  return answers;
}

// Writes tokens, marks and labels into temporary files. The library itself reads a single file of token ids,
// or of text whose tokens are its bytes. Returns nothing for plain text and token ids.
std::optional<Examples> write_dataset_files(const DataFlags& flags, const DataSource& files,
                                            const DataRequest& request, uint64_t vocabulary,
                                            DatasetFiles& written) {
  std::optional<Examples> examples = examples_of(flags, files, request, written.masks);
  if (examples) {
    written.tokens.emplace(token_file(examples->tokens, vocabulary));
    written.marks.emplace(examples->marks);
    if (!examples->labels.empty()) written.labels.emplace(examples->labels);
  } else if (request.tokenization.kind() == Tokenization::Kind::text || !files.is_one_regular_file()) {
    written.tokens.emplace(tokens_of_files(files, request, vocabulary, flags.token_type));
  }
  files.forget();
  const auto path_of = [](const std::optional<TemporaryFile>& one) {
    return one ? one->path() : std::string();
  };
  written.file = files.name();
  written.path = written.tokens ? written.tokens->path() : files.files()[0].path;
  written.marks_path = path_of(written.marks), written.labels_path = path_of(written.labels);
  return examples;
}

// Fills in the options with which the library opens the files.
void set_dataset_options(DatasetFiles& files, const DataFlags& flags, const DataRequest& request,
                         const stw_model_info& about) {
  const Tokenization::Kind kind = request.tokenization.kind();
  stw_dataset_options& options = files.options;
  options.path = files.path.c_str();
  options.marks = files.marks ? files.marks_path.c_str() : nullptr;
  options.labels = files.labels ? files.labels_path.c_str() : nullptr;
  options.label_count = files.labels ? about.labels : 0;
  options.task =
      files.labels && about.task != STW_TASK_LABEL ? about.task : static_cast<uint32_t>(STW_TASK_AUTOMATIC);
  options.pairs = flags.has_pairs;
  if (files.masks) {
    options.mask_rate = files.masks->rate;
    options.mask_token = static_cast<uint64_t>(files.masks->token);
    options.token_kinds = files.masks->kinds.data();
    options.mask_whole_words = files.masks->whole_words;
  }
  options.tokenizer =
      !files.tokens && kind == Tokenization::Kind::bytes ? STW_TOKENIZER_BYTE : STW_TOKENIZER_IDS;
  const bool is_written_here =
      files.tokens && (files.marks || kind != Tokenization::Kind::ids);  // token_file() wrote the ids
  options.token_type =
      type_number(is_written_here ? about.vocabulary > 65536 ? "uint32" : "uint16" : flags.token_type);
  options.vocabulary = about.vocabulary;
  options.sequence = request.sequence;
  options.seed = request.flags.seed;
  options.set_mask |= STW_SET_DATASET_SEED;
  options.watch = work_watch();
  if (request.document_end && !files.marks) {
    options.set_mask |= STW_SET_DOCUMENT_END;
    options.document_end = *request.document_end;
  }
  if (request.held_out) {
    options.set_mask |= STW_SET_HELD_OUT;
    options.held_out = *request.held_out;
  }
  options.in_order = request.in_order && !files.marks;
}

// Documents of which the first token lies in the held-out part.
uint64_t held_out_documents(const Examples& examples, const Dataset& dataset) {
  const uint64_t first = query(dataset).training_tokens;
  return static_cast<uint64_t>(std::count_if(examples.marks.begin() + static_cast<std::ptrdiff_t>(first),
                                             examples.marks.end(),
                                             [](char mark) { return (mark & STW_MARK_BEGIN) != 0; }));
}

// Throws a Failure if the held-out part is too short for an evaluation.
void require_held_out(const OpenData& opened, const DatasetFiles& files, const DataFlags& flags,
                      const DataRequest& request) {
  const uint64_t held_out = query(opened.dataset).evaluation_tokens;
  if (files.marks && held_out == 0)
    throw Failure(exit_failed, fmt::format("{}: too few examples ({}) to hold one out for evaluations{}; {}",
                                           files.file, grouped(opened.counts.examples),
                                           left_out_suffix(opened.counts, flags.has_pairs), request.advice));
  if (!files.marks && !files.options.in_order && held_out <= request.sequence)
    throw Failure(exit_failed, fmt::format("{}: the held-out part needs at least {} tokens (a window of {} "
                                           "and one target more), found {}; use a shorter --seq, or {}",
                                           files.file, grouped(request.sequence + 1),
                                           grouped(request.sequence), grouped(held_out), request.advice));
}

}  // namespace

OpenData open_data(const DataFlags& flags, const DataSource& files, const DataRequest& request) {
  const auto written = std::make_shared<DatasetFiles>();
  const stw_model_info about = query(request.model);
  std::optional<Examples> examples = write_dataset_files(flags, files, request, about.vocabulary, *written);
  set_dataset_options(*written, flags, request, about);
  OpenData opened;
  opened.dataset = written->open();
  if (examples) {
    opened.counts = examples->counts;
    if (flags.has_pairs) opened.answers = answers_by_marks(examples->marks);
    opened.held_out_examples = held_out_documents(*examples, opened.dataset) / (flags.has_pairs ? 2 : 1);
    if (flags.has_pairs && request.evaluates)
      opened.held_out_pairs = held_out_pairs_of(opened, *examples, *written, about.vocabulary);
    if (written->labels) opened.labelled = std::make_shared<const Examples>(std::move(*examples));
  }
  if (flags.has_pairs)
    opened.against = [written](const std::string& reference) {
      written->options.reference = reference.c_str();
      return written->open();
    };
  if (request.evaluates) require_held_out(opened, *written, flags, request);
  return opened;
}

double examples_of_sample(const OpenData& data) {
  const stw_dataset_info info = query(data.dataset);
  return static_cast<double>(data.counts.examples) /
         static_cast<double>(std::max<uint64_t>(1, info.training_samples + info.evaluation_samples));
}

uint64_t samples_of_epoch(const OpenData& data, uint64_t sequence) {
  const stw_dataset_info info = query(data.dataset);
  return info.training_samples ? info.training_samples
                               : std::max<uint64_t>(1, info.training_tokens / sequence);
}

}  // namespace command
