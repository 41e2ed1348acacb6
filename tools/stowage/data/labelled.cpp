#include "data/labelled.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/csv.h"
#include "base/failure.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "base/json_value.h"
#include "base/lines.h"
#include "base/messages.h"
#include "base/units.h"
#include "base/utf8.h"
#include "data/label_words.h"
#include "data/loss_marks.h"

namespace command {
namespace {

// The member that has the label: the one that --label-field names, else "label" or "labels".
JsonView labels_in_object(const JsonView& object, const LabelFields& fields) {
  const JsonView label = object.at(fields.label);
  if (fields.label_given) return label;
  const JsonView labels = object.at("labels");
  if (!label.is_null() && !labels.is_null()) label.fail("one of \"label\" and \"labels\", found both");
  return labels.is_null() ? label : labels;
}

// Whether marks of a text take it out of the loss. A mark is no mark if a flag names it as a text or label.
bool is_marked_out(Json object, const std::string& place, const LabelFields& fields) {
  for (const std::string* name : {&fields.text, &fields.label, &fields.pair}) object.erase(*name);
  return loss_mark(JsonView(object, place), Marked::example) == false;
}

// A field of a table as a JSON value.
Json value_of_field(const std::string& field) {
  std::string word = without_case(without_blanks(field));
  if (word.empty()) return {};
  if (word == "true" || word == "false") return word == "true";
  return real_number_of(word) ? Json::written_number(std::move(word)) : Json(std::move(word));
}

LabelledText of_object(std::string_view line, const std::string& place, const LabelFields& fields,
                       ReadPurpose purpose) {
  const Json object = read_object(line, place, [&](std::string_view key) {
    return key == fields.text || key == fields.pair || key == fields.label || key == "labels" ||
           is_loss_mark(key);
  });
  JsonView(object, place).members();  // throws if it is not an object
  const JsonView view(object, place + ": ");
  LabelledText text;
  text.place = place;
  text.text = view.at(fields.text).text();
  const JsonView pair = view.at(fields.pair);
  if (!fields.pair.empty() && (fields.pair_given || !pair.is_null())) text.pair = pair.text();
  if (purpose != ReadPurpose::answers) text.is_marked = is_marked_out(object, place + ": ", fields);
  if (purpose != ReadPurpose::labels || text.is_marked) return text;
  const JsonView label = labels_in_object(view, fields);
  if (label.is_null()) label.fail("a label");
  text.is_list = label.is_array();
  for (const JsonView& one : text.is_list ? label.elements() : std::vector{label})
    text.labels.push_back(one.word());
  return text;
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
}

std::vector<LabelledText> read_table(std::string_view content, const DataFile& file,
                                     const LabelFields& fields, ReadPurpose purpose) {
  const std::string& path = file.path;
  CsvReader reader(content, path, file.separator);
  const auto header = reader.record();
  if (!header)
    throw Failure(exit_failed, fmt::format("{}: expected a line that names the columns, found none", path));
  const auto column = [&](const std::string& name, const char* advice) {
    const auto found = std::find(header->begin(), header->end(), name);
    if (std::count(header->begin(), header->end(), name) > 1)
      throw Failure(exit_failed, fmt::format("{}: there are several columns \"{}\"", path, name));
    if (found == header->end())
      throw Failure(
          exit_failed,
          fmt::format(
              "{}: there is no column \"{}\"; there are {} ({}){}", path, name,
              shortened(fmt::format("{}", fmt::join(*header, ", ")), most_of_header), advice,
              purpose == ReadPurpose::labels
                  ? "; examples to learn have prompt and completion, or chosen and rejected, or text alone"
                  : ""));
    return static_cast<size_t>(found - header->begin());
  };
  const size_t text = column(fields.text,
                             "--text-field names another, and --pair-field the second text of a pair"),
               label =
                   purpose == ReadPurpose::labels ? column(fields.label, "--label-field names another") : 0;
  const auto found =
      fields.pair.empty() ? header->end() : std::find(header->begin(), header->end(), fields.pair);
  const auto pair = fields.pair_given && !fields.pair.empty()
                        ? column(fields.pair, "--pair-field names another")
                        : static_cast<size_t>(found - header->begin());  // the end if there is none
  if (purpose == ReadPurpose::answers && header->size() == 1) reader.keep_blank_lines();
  std::vector<LabelledText> texts;
  while (const auto record = reader.row(header->size())) {
    texts.push_back({(*record)[text], {}, reader.where()});
    if (purpose == ReadPurpose::labels)
      take_labels_of_field(texts.back(), (*record)[label], fields.separator);
    if (pair < record->size()) texts.back().pair = (*record)[pair];
    if (purpose == ReadPurpose::answers) continue;
    Json::Object marks;
    for (size_t i = 0; i < header->size(); ++i)
      if (is_loss_mark((*header)[i])) marks.emplace_back((*header)[i], value_of_field((*record)[i]));
    texts.back().is_marked = is_marked_out(std::move(marks), reader.where() + ": ", fields);
  }
  return texts;
}

// Takes the elements of lists that are written in one field, if all texts have such lists.
void take_written_lists(std::vector<LabelledText>& texts) {
  std::vector<std::optional<std::vector<std::string>>> lists;
  const LabelledText *list = nullptr, *other = nullptr;
  for (const LabelledText& text : texts) {
    lists.push_back(text.is_list ? std::optional(text.labels) : written_list(text.labels[0]));
    if (!text.is_list && lists.back() && !list) list = &text;
    if (!lists.back() && !other) other = &text;
  }
  if (!list) return;
  if (other)
    throw Failure(
        exit_failed,
        fmt::format("{}: its label \"{}\" is a list as text, and that of {}, \"{}\", is "
                    "none: write lists for all texts, or for none",
                    list->place, shortened(list->labels[0]), other->place, shortened(other->labels[0])));
  for (size_t i = 0; i < texts.size(); ++i) texts[i].labels = std::move(*lists[i]), texts[i].is_list = true;
}

const char* word_of_task(uint32_t task) { return task == STW_TASK_LABELS ? "labels" : "number"; }

}  // namespace

bool holds_labels(const DataSource& data, const LabelFields& fields) {
  if (data.is_table()) return fields.label_given || !data.is_table_of_examples();
  if (!data.holds_objects()) return false;
  if (fields.label_given) return true;
  bool found = false;
  data.for_objects([&](std::string_view text, const std::string& place) {
    const Outline object = read_outline(text, place);
    if (!object.is_object) return true;
    // The first object that is an example or a labelled text decides for the whole file.
    for (const char* of_examples : {"prompt", "completion", "messages", "conversations"})
      if (object.has(of_examples)) return false;
    found = (object.has(fields.label) || object.kind_of("labels") == Json::Kind::array) &&
            object.has(fields.text);
    return !found;
  });
  return found;
}

std::vector<LabelledText> read_labelled(const DataSource& data, const LabelFields& fields,
                                        ReadPurpose purpose, uint64_t* marked) {
  const std::string& path = data.name();
  std::vector<LabelledText> texts;
  if (data.is_table()) {
    for (size_t i = 0; i < data.files().size(); ++i)
      for (LabelledText& text : read_table(data.content(i), data.files()[i], fields, purpose))
        texts.push_back(std::move(text));
  } else {
    const auto read = [&](std::string_view line, const std::string& place) {
      texts.push_back(is_blank(line) ? LabelledText{"", {}, place} : of_object(line, place, fields, purpose));
      return true;
    };
    data.for_objects(read, purpose == ReadPurpose::answers);
  }
  if (texts.empty())
    throw Failure(exit_failed, fmt::format("{}: expected a line for each text, found none", path));
  if (purpose == ReadPurpose::answers) return texts;
  const size_t out = std::erase_if(texts, [](const LabelledText& text) { return text.is_marked; });
  if (marked) *marked = out;
  if (texts.empty())
    throw Failure(exit_failed, fmt::format("{}: nothing to learn: all {} texts are marked out of the loss",
                                           path, grouped(out)));
  if (purpose == ReadPurpose::labels && fields.separator.empty()) take_written_lists(texts);
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

std::string labels_json(std::span<const std::string> names, uint32_t task) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + json_quoted(name);
  text = "[" + text + "]";
  return task != STW_TASK_LABELS && task != STW_TASK_NUMBER
             ? text + "\n"
             : fmt::format("{{\n  \"task\": \"{}\",\n  \"labels\": {}\n}}\n", word_of_task(task), text);
}

LabelsOfRun labels_in(const std::string& json, const std::string& path) {
  LabelsOfRun of_run;
  const Json value = read_json(json, path);
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

char mark_of(std::span<const int32_t> token_types, size_t token, const std::string& place) {
  const int32_t type = token_types.empty() ? 0 : token_types[token];
  if (type > 1)
    throw Failure(
        exit_failed,
        fmt::format("{}: the tokenizer gives tokens the type {}; train and eval know the types 0 and "
                    "1: give the second text the type 1 in the tokenizer's template",
                    place, type));
  return static_cast<char>((token == 0 ? STW_MARK_BEGIN : 0) | (type == 1 ? STW_MARK_SECOND : 0));
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
                                                      : "it has no types of tokens; --pair-field none "
                                                        "leaves the second text out"));
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

}  // namespace command
