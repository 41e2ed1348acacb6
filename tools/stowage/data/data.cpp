#include "data/data.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/kept_options.h"
#include "base/messages.h"
#include "base/repeated.h"
#include "base/units.h"
#include "base/utf8.h"
#include "base/work_line.h"
#include "data/label_targets.h"
#include "data/pairs.h"
#include "data/question_texts.h"
#include "data/tag_scheme.h"
#include "data/tagged.h"
#include "data/token_files.h"

namespace command {
namespace {

// Holds bytes in a temporary file without a name, which disappears with the process.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes) : file_(std::tmpfile()) {
    if (!file_ || write_all(bytes, file_) != bytes.size() || std::fflush(file_) != 0)
      throw failed(bytes.size(), "tokens");
  }
  // The targets of texts, of which each has any of `width` labels.
  TemporaryFile(const LabelLists& lists, size_t width) : file_(std::tmpfile()) {
    if (!file_ || !write_targets(lists, width, ::fileno(file_)))
      throw failed(uint64_t{lists.size()} * width * sizeof(float), "labels");
  }
  ~TemporaryFile() {
    if (file_) std::fclose(file_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  std::string path() const { return fmt::format("/dev/fd/{}", ::fileno(file_)); }

 private:
  static Failure failed(uint64_t bytes, const char* of) {
    return Failure(exit_failed, fmt::format("cannot write {} bytes of {} into a temporary file: {}",
                                            grouped(bytes), of, std::strerror(errno)));
  }
  std::FILE* file_;
};

// The files and options of a dataset, kept so that it can be opened again.
struct DatasetFiles {
  std::optional<TemporaryFile> tokens, marks, labels;
  std::string file, path, marks_path, labels_path;  // file: the name in messages to the user
  std::optional<Masks> masks;
  std::optional<HeldOutAgain> again;
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

constexpr double default_held_out = 0.1;  // as in the library

// The examples; `marked` others were taken out of the loss.
Examples with_marked(uint64_t marked, Examples examples) {
  examples.counts.left_out[static_cast<size_t>(LeftOut::marked)] = marked;
  return examples;
}

// The questions in the data; nothing if it has none, and the model does not find answers.
std::optional<Examples> questions_of(const DataFlags& flags, const DataSource& data,
                                     const DataRequest& request, Order order) {
  const bool is_own = &data == &flags.source,
             has_questions = is_own ? flags.has_questions : holds_questions(data, flags.has_questions);
  const stw_model_info about = query(request.model);
  const std::string& path = data.name();
  if (about.task != STW_TASK_SPANS && !has_questions) return std::nullopt;
  if (!has_questions)
    throw Failure(exit_failed,
                  fmt::format("{}: the model finds answers in contexts: expected SQuAD's JSON, or JSON of "
                              "{{\"question\": …, \"context\": …, \"answers\": …}}",
                              path));
  if (about.task != STW_TASK_SPANS) refuse_questions(data, request.flags.source);
  Questions questions = read_questions(data, true, flags.questions.skips_bad);
  return question_examples(question_set(std::move(questions), flags.questions, request.tokenization, about,
                                        request.sequence, path),
                           order);
}

}  // namespace

std::optional<Examples> examples_of(const DataFlags& flags, const DataSource& data,
                                    const DataRequest& request, std::optional<Masks>& masks) {
  const std::string& path = data.name();
  const bool is_own = &data == &flags.source;
  const Order order = flags.holds_out_tail ? Order::of_file : Order::shuffled;
  if (!is_own) require_downloaded(data), require_content(data);
  if (std::optional<Examples> questions = questions_of(flags, data, request, order)) return questions;
  const stw_model_info about = query(request.model);
  const bool has_tags = is_own ? flags.has_tags : holds_tags(data, flags.fields);
  if (about.task == STW_TASK_TOKEN_LABEL) {
    if (!has_tags)
      throw Failure(exit_failed,
                    fmt::format("{}: the model gives each word one of {} labels: expected a .conll file, or "
                                "a .jsonl file of words and tags, {{\"tokens\": […], \"tags\": […]}}",
                                path, grouped(about.labels)));
    uint64_t marked = 0;
    std::string reading;
    const std::vector<TaggedText> texts = read_tagged(data, flags.fields, true, &marked, &reading);
    const std::vector<std::string> labels = labels_of(request.model);
    Examples examples = tagged_examples(texts, labels, request.tokenization, about, request.sequence, order);
    const std::string counted = are_entity_tags(labels) ? "" : words_are_counted(labels);
    examples.reading = reading + (reading.empty() || counted.empty() ? "" : "; ") + counted;
    return with_marked(marked, std::move(examples));
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
    uint64_t marked = 0;
    const std::vector<LabelledText> texts = read_labelled(data, flags.fields, ReadPurpose::labels, &marked);
    return with_marked(marked, label_examples(texts, labels, request.tokenization, query(request.model),
                                              request.sequence, order));
  }
  if (has_labels)
    throw Failure(exit_failed, fmt::format("{}: its texts have labels, and {} is a language model", path,
                                           request.flags.source));
  const bool has_pairs = is_own ? flags.has_pairs : holds_pairs(data);
  if (has_pairs != flags.has_pairs)
    throw Failure(exit_failed, fmt::format("{}: it has {}pairs of answers, but {} has {}", path,
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
  const uint64_t positions = query(request.model).positions;
  Examples examples = has_pairs ? read_pairs(data, reader, request.sequence, positions, order)
                                : read_examples(data, reader, request.sequence, positions, order);
  if (conversations && is_own) warn_of_endless_turns(*conversations, request);
  return examples;
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

DocumentLayout layout_of(const DataFlags& flags, const stw_model_info& about) {
  return {flags.has_pairs, about.task == STW_TASK_TOKEN_LABEL};
}

// Writes tokens, marks and labels into temporary files. The library itself reads a single file of token ids,
// or of text whose tokens are its bytes. `before`: texts to hold out. Returns nothing for plain text and
// token ids.
std::optional<Examples> write_dataset_files(const DataFlags& flags, const DataSource& files,
                                            const DataRequest& request, const stw_model_info& about,
                                            const HeldOutTexts& before, DatasetFiles& written) {
  const uint64_t vocabulary = about.vocabulary;
  std::optional<Examples> examples = examples_of(flags, files, request, written.masks);
  if (examples) {
    // A window of tokens to predict has one more than a sample.
    const uint64_t window = request.sequence + (!examples->has_labels() && !written.masks);
    written.again = hold_out_again(*examples, layout_of(flags, about), before, window);
    if (examples->questions && !written.again && !request.held_out)
      written.again = {0, share_of_questions(*examples, default_held_out)};
    written.tokens.emplace(token_file(examples->tokens, vocabulary));
    written.marks.emplace(examples->marks);
    if (!examples->lists.empty()) written.labels.emplace(examples->lists, query(request.model).labels);
    else if (examples->has_labels()) written.labels.emplace(examples->labels);
  } else if (request.tokenization.kind() == Tokenization::Kind::text || !files.is_one_regular_file()) {
    written.tokens.emplace(
        tokens_of_files(files, request.tokenization, request.document_end, vocabulary, flags.token_type));
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
      token_type_number(is_written_here ? about.vocabulary > 65536 ? "uint32" : "uint16" : flags.token_type);
  options.vocabulary = about.vocabulary;
  options.sequence = request.sequence;
  options.texts = request.texts;
  options.seed = request.flags.seed;
  options.set_mask |= STW_SET_DATASET_SEED;
  options.watch = work_watch();
  if (request.document_end && !files.marks) {
    options.set_mask |= STW_SET_DOCUMENT_END;
    options.document_end = *request.document_end;
  }
  if (request.held_out || files.again) {
    options.set_mask |= STW_SET_HELD_OUT;
    options.held_out = files.again ? files.again->share : *request.held_out;
  }
  options.sequential = request.sequential && !files.marks;
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
  if (!files.marks && !files.options.sequential && held_out <= request.sequence)
    throw Failure(exit_failed, fmt::format("{}: the held-out part needs at least {} tokens (a window of {} "
                                           "and one target more), found {}; use a shorter --seq, or {}",
                                           files.file, grouped(request.sequence + 1),
                                           grouped(request.sequence), grouped(held_out), request.advice));
}

OpenData open_once(const DataFlags& flags, const DataSource& files, const DataRequest& request,
                   const HeldOutTexts& before) {
  const auto written = std::make_shared<DatasetFiles>();
  const stw_model_info about = query(request.model);
  std::optional<Examples> examples = write_dataset_files(flags, files, request, about, before, *written);
  set_dataset_options(*written, flags, request, about);
  OpenData opened;
  opened.dataset = written->open();
  if (examples) {
    opened.counts = examples->counts;
    opened.held_out_again = written->again ? written->again->texts : 0;
    if (request.evaluates)
      opened.held_out_texts =
          held_out_texts(*examples, layout_of(flags, about), query(opened.dataset).training_tokens);
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

}  // namespace

std::optional<HeldOutBefore> held_out_of_run(const std::string& folder) {
  const std::string path = folder + "/held-out.txt";
  const auto content = folder.empty() ? std::nullopt : data_of_run(folder);
  const auto text = content ? read_text_if_there(path) : std::nullopt;
  if (!text) return std::nullopt;
  return HeldOutBefore{read_held_out(*text, path), *content};
}

OpenData open_data(const DataFlags& flags, const DataSource& files, const DataRequest& request) {
  OpenData opened = open_once(flags, files, request, {});
  if (!request.evaluates || !request.before || request.before->content == query(opened.dataset).content_hash)
    return opened;
  return open_once(flags, files, request, request.before->texts);
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
