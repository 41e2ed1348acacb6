#include "data/labelled.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/failure.h"
#include "base/files.h"
#include "base/json_value.h"
#include "base/lines.h"
#include "base/messages.h"
#include "base/units.h"
#include "base/utf8.h"
#include "data/csv.h"
#include "data/new_head.h"
#include "tokenizer/unicode.h"

namespace command {
namespace {

static_assert(std::endian::native == std::endian::little, "labels are stored little-endian");

std::optional<uint64_t> number_of(std::string_view label) {
  uint64_t number = 0;
  const auto read = std::from_chars(label.data(), label.data() + label.size(), number);
  return read.ec == std::errc() && read.ptr == label.data() + label.size() ? std::optional(number)
                                                                           : std::nullopt;
}

// The value of a word of a JSON or .csv file as a finite number. Nothing if it is not a finite number.
std::optional<double> real_number_of(std::string_view word) {
  double number = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
  return read.ec == std::errc() && read.ptr == word.data() + word.size() && std::isfinite(number)
             ? std::optional(number)
             : std::nullopt;
}

// The member that has the label: the one that --label-field names, else "label" or "labels".
JsonView labels_in_object(const JsonView& object, const LabelFields& fields) {
  const JsonView label = object.at(fields.label);
  if (fields.label_given) return label;
  const JsonView labels = object.at("labels");
  if (!label.is_null() && !labels.is_null()) label.fail("one of \"label\" and \"labels\", found both");
  return labels.is_null() ? label : labels;
}

LabelledText of_object(std::string_view line, const std::string& place, const LabelFields& fields,
                       bool with_labels) {
  const JsonValue object = read_object(line, place, [&](std::string_view key) {
    return key == fields.text || key == fields.pair || key == fields.label || key == "labels";
  });
  JsonView(object, place).members();  // throws if it is not an object
  const JsonView view(object, place + ": ");
  LabelledText text;
  text.place = place;
  text.text = view.at(fields.text).text();
  if (const JsonView pair = view.at(fields.pair); !pair.is_null()) text.pair = pair.text();
  if (!with_labels) return text;
  const JsonView label = labels_in_object(view, fields);
  if (label.is_null()) label.fail("a label");
  text.is_list = label.is_array();
  for (const JsonView& one : text.is_list ? label.elements() : std::vector{label}) {
    text.labels.push_back(one.word());
    text.has_names = text.has_names || one.raw().kind != JsonValue::Kind::number;
  }
  return text;
}

// The word in lower case.
std::string without_case(std::string_view word) {
  std::string small;
  while (!word.empty()) {
    const Character c = first_character(word);
    append_utf8(small, lowercase_of(c.code));
    word.remove_prefix(c.bytes);
  }
  return small;
}

std::string_view without_blanks(std::string_view word) {
  const size_t first = word.find_first_not_of(" \t\r\n");
  return first == word.npos ? std::string_view()
                            : word.substr(first, word.find_last_not_of(" \t\r\n") + 1 - first);
}

// Splits a field of a .csv file into labels.
void take_labels_of_field(LabelledText& text, std::string_view field, const std::string& separator) {
  text.is_list = !separator.empty();
  if (!text.is_list) {
    text.labels = {std::string(field)};
  } else if (!without_blanks(field).empty()) {
    for (size_t at = 0, end; at <= field.size(); at = end + separator.size()) {
      end = std::min(field.find(separator, at), field.size());
      text.labels.emplace_back(without_blanks(field.substr(at, end - at)));
    }
  }
  text.has_names = !std::all_of(text.labels.begin(), text.labels.end(),
                                [](const std::string& label) { return real_number_of(label).has_value(); });
}

std::vector<LabelledText> read_table(std::string_view content, const DataFile& file,
                                     const LabelFields& fields, ReadPurpose purpose) {
  const std::string& path = file.path;
  CsvReader reader(content, path, file.separator);
  const auto header = reader.record();
  if (!header)
    throw Failure(exit_failed, fmt::format("{}: expected a line that names the columns, found none", path));
  const auto column = [&](const std::string& name, const char* flag) {
    const auto found = std::find(header->begin(), header->end(), name);
    if (std::count(header->begin(), header->end(), name) > 1)
      throw Failure(exit_failed, fmt::format("{}: there are several columns \"{}\"", path, name));
    if (found == header->end())
      throw Failure(
          exit_failed,
          fmt::format(
              "{}: there is no column \"{}\"; there are {} ({} names another){}", path, name,
              shortened(fmt::format("{}", fmt::join(*header, ", ")), most_of_header), flag,
              purpose == ReadPurpose::labels
                  ? "; examples to learn have prompt and completion, or chosen and rejected, or text alone"
                  : ""));
    return static_cast<size_t>(found - header->begin());
  };
  const size_t text = column(fields.text, "--text-field"),
               label = purpose == ReadPurpose::labels ? column(fields.label, "--label-field") : 0;
  const auto pair = static_cast<size_t>(std::find(header->begin(), header->end(), fields.pair) -
                                        header->begin());  // the end if there is no such column
  if (purpose == ReadPurpose::answers && header->size() == 1) reader.keep_blank_lines();
  std::vector<LabelledText> texts;
  while (const auto record = reader.record()) {
    if (record->size() != header->size())
      throw Failure(exit_failed, fmt::format("{}: expected {} fields, as many as there are columns, found {}",
                                             reader.where(), header->size(), record->size()));
    texts.push_back({(*record)[text], {}, reader.where()});
    if (purpose == ReadPurpose::labels)
      take_labels_of_field(texts.back(), (*record)[label], fields.separator);
    if (pair < record->size()) texts.back().pair = (*record)[pair];
  }
  return texts;
}

// Finds the index of a word among the model's labels.
class Labels {
 public:
  Labels(std::span<const std::string> names, std::span<const LabelledText> texts)
      : names_(names), count_(names.size()) {
    for (size_t i = 0; i < names.size(); ++i) numbers_.emplace(names[i], static_cast<uint32_t>(i));
    const auto is_name = [&](const std::string& label) { return numbers_.count(label) > 0; };
    by_number_ = std::none_of(names.begin(), names.end(),
                              [](const std::string& name) { return number_of(name).has_value(); }) &&
                 std::none_of(texts.begin(), texts.end(), [&](const LabelledText& t) {
                   return std::any_of(t.labels.begin(), t.labels.end(), is_name);
                 });
  }
  uint32_t operator()(const std::string& label, const std::string& place) const {
    if (by_number_) {
      if (const auto number = number_of(label); number && *number < count_)
        return static_cast<uint32_t>(*number);
    } else if (const auto found = numbers_.find(label); found != numbers_.end()) {
      return found->second;
    }
    throw Failure(exit_failed, fmt::format("{}: \"{}\" is not one of the model's {}", place, shortened(label),
                                           count_and_labels(names_)));
  }
  // For a text with one label.
  uint32_t operator()(const LabelledText& text) const {
    if (text.is_list)
      throw Failure(
          exit_failed,
          fmt::format("{}: has a list of labels, but the model gives each text one label", text.place));
    return (*this)(text.labels[0], text.place);
  }

 private:
  std::span<const std::string> names_;
  size_t count_;
  std::map<std::string_view, uint32_t> numbers_;
  bool by_number_ = false;
};

float number_in(const LabelledText& text, const std::string& word) {
  const auto number = real_number_of(word);
  if (!number || text.has_names || !std::isfinite(static_cast<float>(*number)))
    throw Failure(exit_failed,
                  fmt::format("{}: expected a finite number, found \"{}\"", text.place, shortened(word)));
  return static_cast<float>(*number);
}

// Whether the labels are whole numbers, and none between the smallest and the largest is missing.
bool are_numbered_classes(std::span<const LabelledText> texts) {
  std::set<uint64_t> numbers;
  for (const LabelledText& text : texts) {
    const auto number = number_of(text.labels[0]);
    if (!number) return false;
    numbers.insert(*number);
  }
  return *numbers.rbegin() - *numbers.begin() == numbers.size() - 1;
}

// Whether programs write this word in place of a missing number.
bool stands_for_no_number(std::string_view word) {
  constexpr std::string_view words[] = {"nan",       "+nan", "-nan", "inf", "+inf", "-inf", "infinity",
                                        "-infinity", "null", "none", "na",  "n/a",  "<na>"};
  const std::string small = without_case(word);
  return std::find(std::begin(words), std::end(words), small) != std::end(words);
}

// Throws if the labels are numbers and words such as "nan", because such words would become labels.
void check_missing_numbers(std::span<const LabelledText> texts) {
  const LabelledText* first = nullptr;
  const std::string* word = nullptr;
  bool has_numbers = false;
  for (const LabelledText& text : texts)
    for (const std::string& label : text.labels) {
      if (real_number_of(label)) {
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

const char* word_of_task(uint32_t task) { return task == STW_TASK_LABELS ? "labels" : "number"; }

}  // namespace

bool holds_labels(const DataSource& data, const LabelFields& fields) {
  if (data.is_table()) return fields.label_given || !data.is_table_of_examples();
  if (!data.holds_objects()) return false;
  if (fields.label_given) return true;
  bool found = false;
  data.for_objects([&](std::string_view text, const std::string& place) {
    const JsonValue object = read_object(text, place, {});
    const JsonView view(object, place);
    if (object.kind != JsonValue::Kind::object) return true;
    // The first object that is an example or a labelled text decides for the whole file.
    for (const char* of_examples : {"prompt", "completion", "messages", "conversations"})
      if (!view.at(of_examples).is_null()) return false;
    found =
        (!view.at(fields.label).is_null() || view.at("labels").is_array()) && !view.at(fields.text).is_null();
    return !found;
  });
  return found;
}

std::vector<LabelledText> read_labelled(const DataSource& data, const LabelFields& fields,
                                        ReadPurpose purpose) {
  const std::string& path = data.name();
  std::vector<LabelledText> texts;
  if (data.is_table()) {
    for (size_t i = 0; i < data.files().size(); ++i)
      for (LabelledText& text : read_table(data.content(i), data.files()[i], fields, purpose))
        texts.push_back(std::move(text));
  } else {
    const auto read = [&](std::string_view line, const std::string& place) {
      texts.push_back(is_blank(line) ? LabelledText{"", {}, place}
                                     : of_object(line, place, fields, purpose == ReadPurpose::labels));
      return true;
    };
    data.for_objects(read, purpose == ReadPurpose::answers);
  }
  if (texts.empty())
    throw Failure(exit_failed, fmt::format("{}: expected a line for each text, found none", path));
  if (purpose == ReadPurpose::answers) return texts;
  for (const LabelledText& text : texts) {
    if (text.pair && is_blank(*text.pair))
      throw Failure(exit_failed, fmt::format("{}: \"{}\" is empty", text.place, fields.pair));
    if (is_blank(text.text))
      throw Failure(exit_failed, fmt::format("{}: \"{}\" is empty", text.place, fields.text));
    for (const std::string& label : text.labels) {
      if (is_blank(label))
        throw Failure(exit_failed, fmt::format("{}: \"{}\" is empty", text.place, fields.label));
      if (label != valid_utf8(label) || label.find('\0') != std::string::npos)
        throw Failure(exit_failed,
                      fmt::format("{}: \"{}\" is not UTF-8, or has a zero byte", text.place, fields.label));
    }
  }
  return texts;
}

std::vector<LabelledText> read_lines(const DataSource& data) {
  std::vector<LabelledText> texts;
  for (size_t i = 0; i < data.files().size(); ++i)
    for_all_lines(data.content(i), [&](uint64_t number, std::string_view line) {
      if (line.ends_with('\r')) line.remove_suffix(1);
      texts.push_back({std::string(line), {}, fmt::format("{}, line {}", data.files()[i].path, number)});
      return true;
    });
  if (texts.empty())
    throw Failure(exit_failed, fmt::format("{}: expected a line for each text, found none", data.name()));
  return texts;
}

std::vector<std::string> labels_of(std::span<const LabelledText> texts) {
  std::set<std::string> names;
  for (const LabelledText& text : texts) names.insert(text.labels.begin(), text.labels.end());
  std::vector<std::string> list(names.begin(), names.end());
  if (std::all_of(list.begin(), list.end(),
                  [](const std::string& name) { return number_of(name).has_value(); }))
    std::stable_sort(list.begin(), list.end(), [](const std::string& a, const std::string& b) {
      return *number_of(a) < *number_of(b);
    });
  return list;
}

void check_names(std::span<const std::string> names, const std::string& path) {
  const bool are_numbers = std::all_of(
      names.begin(), names.end(), [](const std::string& name) { return real_number_of(name).has_value(); });
  std::map<double, std::string_view> numbers;
  std::map<std::string, std::string_view> spellings;
  for (const std::string& name : names) {
    if (const auto number = real_number_of(name); number && are_numbers) {
      const auto [other, is_new] = numbers.emplace(*number, name);
      const bool are_digits =
          number_of(name) && number_of(other->second);  // such as "01" and "1", which are allowed as names
      if (!is_new && !are_digits)
        throw Failure(exit_failed, fmt::format("{}: the labels \"{}\" and \"{}\" are the same number, and "
                                               "would be two labels: write them alike",
                                               path, other->second, name));
    }
    const auto [other, is_new] = spellings.emplace(without_case(without_blanks(name)), name);
    if (!is_new)
      complain(
          "stowage: warning: {}: the labels \"{}\" and \"{}\" differ in case or blanks alone, and are two "
          "labels",
          path, shortened(std::string(other->second)), shortened(name));
  }
}

uint32_t task_of(std::span<const LabelledText> texts, const std::string& path) {
  const bool has_names =
      std::any_of(texts.begin(), texts.end(), [](const LabelledText& text) { return text.has_names; });
  const bool has_lists =
      std::any_of(texts.begin(), texts.end(), [](const LabelledText& text) { return text.is_list; });
  if (std::all_of(texts.begin(), texts.end(), [](const LabelledText& text) { return text.labels.empty(); }))
    throw Failure(exit_failed, fmt::format("{}: no text has a label", path));
  check_missing_numbers(texts);
  if (has_lists && has_names) return STW_TASK_LABELS;
  if (!has_lists && (has_names || are_numbered_classes(texts))) return STW_TASK_LABEL;
  throw Failure(exit_usage, fmt::format("--data {}: its labels are numbers: learn them as numbers with "
                                        "--task number, or as names with --task {}",
                                        path, has_lists ? "labels" : "label"));
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

std::string labels_json(std::span<const std::string> names, uint32_t task) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + json_quoted(name);
  text = "[" + text + "]";
  return task != STW_TASK_LABELS && task != STW_TASK_NUMBER
             ? text + "\n"
             : fmt::format("{{\"task\": \"{}\", \"labels\": {}}}\n", word_of_task(task), text);
}

LabelsOfRun labels_in(const std::string& json, const std::string& path) {
  LabelsOfRun of_run;
  const JsonValue value = read_json(json, path);
  const JsonView view(value, path);
  if (!view.is_array()) of_run.task = view.at("task").text();
  for (const JsonView& name : (view.is_array() ? view : view.at("labels")).elements())
    of_run.names.push_back(name.text());
  return of_run;
}

// The tokens of a text for an encoder. Cuts the end of the text; the special tokens stay.
static EncodedText tokens_of_encoder(const LabelledText& text, const Tokenization& tokenization,
                                     const stw_model_info& model, uint64_t most) {
  if (tokenization.kind() == Tokenization::Kind::bytes) {
    EncodedText encoded{tokenization.encode(text.text, text.place), {}, false};
    encoded.is_cut = encoded.tokens.size() > most;
    if (encoded.is_cut) encoded.tokens.resize(most);
    return encoded;
  }
  EncodeOptions options;
  options.max_tokens = most;
  Encoding encoding = tokenization.encode(text.text, text.pair, text.place, options);
  // transformers too gives no token types to a model that has none.
  const bool has_types = std::any_of(encoding.token_types.begin(), encoding.token_types.end(),
                                     [](int32_t type) { return type != 0; });
  if (model.token_types == 0 || !has_types) encoding.token_types.clear();
  for (const int32_t type : encoding.token_types)
    if (static_cast<uint32_t>(type) >= model.token_types)
      throw Failure(
          exit_failed,
          fmt::format("{}: the tokenizer gives tokens the type {}, and the model has {} types of tokens",
                      text.place, type, model.token_types));
  return {std::move(encoding.tokens), std::move(encoding.token_types), encoding.is_truncated};
}

EncodedText tokens_of(const LabelledText& text, const Tokenization& tokenization, const stw_model_info& model,
                      uint64_t most) {
  if (tokenization.kind() == Tokenization::Kind::ids)
    throw Failure(exit_usage, fmt::format("{}: is a text; there is no tokenizer (--tokenizer)", text.place));
  const bool is_encoder = model.generates == 0;
  if (text.pair && (!is_encoder || tokenization.kind() == Tokenization::Kind::bytes))
    throw Failure(exit_failed, fmt::format("{}: has two texts, which {} does not tell apart: {}", text.place,
                                           is_encoder ? "a tokenizer of bytes" : "the model",
                                           is_encoder ? "name a tokenizer with --tokenizer"
                                                      : "it has no types of tokens"));
  if (is_encoder) return tokens_of_encoder(text, tokenization, model, most);
  const int64_t padding = model.padding_token;
  EncodedText encoded{tokenization.encode(text.text, text.place), {}, false};
  std::vector<int32_t>& tokens = encoded.tokens;
  encoded.is_cut = tokens.size() > most;
  uint64_t padding_count = 0;  // padding tokens at the end; they count towards `most`
  for (; tokens.size() > 1 && tokens.back() == padding; ++padding_count) tokens.pop_back();
  if (encoded.is_cut)
    tokens.resize(std::min<uint64_t>(tokens.size(), most > padding_count ? most - padding_count : 1));
  return encoded;
}

std::vector<float> label_logits(stw_trainer* trainer, std::span<const EncodedText> texts, size_t labels,
                                bool of_tokens) {
  std::vector<int32_t> tokens, types;
  std::vector<uint64_t> lengths;
  const bool has_types = std::any_of(texts.begin(), texts.end(),
                                     [](const EncodedText& text) { return !text.token_types.empty(); });
  for (const EncodedText& text : texts) {
    tokens.insert(tokens.end(), text.tokens.begin(), text.tokens.end());
    types.insert(types.end(), text.token_types.begin(), text.token_types.end());
    if (has_types) types.resize(tokens.size());
    lengths.push_back(text.tokens.size());
  }
  std::vector<float> logits((of_tokens ? tokens.size() : texts.size()) * labels);
  call([&](stw_error* error) {
    return stw_trainer_classify(trainer, tokens.data(), has_types ? types.data() : nullptr, lengths.data(),
                                lengths.size(), logits.data(), logits.size(), error);
  });
  return logits;
}

// The numbers of a text, of which the model gives `width`.
static std::vector<float> numbers_in(const LabelledText& text, size_t width) {
  if (text.labels.size() != width)
    throw Failure(exit_failed, fmt::format("{}: expected {} numbers, as many as the model gives, found {}",
                                           text.place, width, text.labels.size()));
  std::vector<float> numbers;
  for (const std::string& word : text.labels) numbers.push_back(number_in(text, word));
  return numbers;
}

void require_labels(std::span<const LabelledText> texts, std::span<const std::string> labels, uint32_t task) {
  const Labels number_of_label(task == STW_TASK_NUMBER ? std::span<const std::string>() : labels, texts);
  for (const LabelledText& text : texts) {
    if (task == STW_TASK_LABEL) number_of_label(text);
    else if (task == STW_TASK_NUMBER) numbers_in(text, labels.size());
    else
      for (const std::string& label : text.labels) number_of_label(label, text.place);
  }
}

std::vector<uint32_t> label_numbers(std::span<const LabelledText> texts,
                                    std::span<const std::string> labels) {
  const Labels number_of_label(labels, texts);
  std::vector<uint32_t> numbers;
  for (const LabelledText& text : texts) numbers.push_back(number_of_label(text));
  return numbers;
}

std::vector<float> label_values(std::span<const LabelledText> texts, std::span<const std::string> labels,
                                uint32_t task) {
  const size_t width = labels.size();
  std::vector<float> values(texts.size() * width);
  const Labels number_of_label(task == STW_TASK_LABELS ? labels : std::span<const std::string>(), texts);
  for (size_t i = 0; i < texts.size(); ++i) {
    const LabelledText& text = texts[i];
    float* const row = values.data() + i * width;
    if (task == STW_TASK_LABELS) {
      for (const std::string& label : text.labels) row[number_of_label(label, text.place)] = 1;
      continue;
    }
    const std::vector<float> numbers = numbers_in(text, width);
    std::copy(numbers.begin(), numbers.end(), row);
  }
  return values;
}

Examples label_examples(std::span<const LabelledText> texts, std::span<const std::string> labels,
                        const Tokenization& tokenization, const stw_model_info& model, uint64_t sequence,
                        Order order) {
  const bool has_values = model.task == STW_TASK_LABELS || model.task == STW_TASK_NUMBER;
  std::string label_bytes;  // of all texts, the same number for each
  const auto put = [&](const auto& numbers) {
    label_bytes.assign(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof numbers[0]);
  };
  if (has_values) put(label_values(texts, labels, model.task));
  else put(label_numbers(texts, labels));
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
  all.counts.examples = all.counts.learned = documents.size();
  for (const auto& [tokens, token_types, text] : documents) {
    all.labels.append(label_bytes, text * bytes_of_text, bytes_of_text);
    all.origins.push_back({text + 1, texts[text].place});
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool is_second = !token_types.empty() && token_types[i] != 0;
      all.marks += static_cast<char>((i == 0 ? STW_MARK_BEGIN : 0) | (is_second ? STW_MARK_SECOND : 0));
    }
    all.tokens.insert(all.tokens.end(), tokens.begin(), tokens.end());
  }
  return all;
}

}  // namespace command
