#include "data/data_source.h"

#include <dirent.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/csv.h"
#include "base/downloads.h"
#include "base/failure.h"
#include "base/files.h"
#include "base/foreign_file.h"
#include "base/json_fields.h"
#include "base/json_reader.h"
#include "base/json_value.h"
#include "base/lines.h"
#include "base/messages.h"
#include "base/units.h"
#include "base/utf8.h"
#include "data/text_pairs.h"

namespace command {
namespace {

constexpr size_t begin_bytes = size_t{64} << 10;  // bytes that are read to recognise a format
constexpr size_t most_sampled = 20;               // lines or records that are examined

struct Ending {
  const char* ending;
  DataFormat format;
};
constexpr Ending endings[] = {
    {".jsonl", DataFormat::jsonl}, {".ndjson", DataFormat::jsonl}, {".jsonlines", DataFormat::jsonl},
    {".json", DataFormat::json},   {".csv", DataFormat::csv},      {".tsv", DataFormat::tsv},
    {".tab", DataFormat::tsv},     {".conll", DataFormat::conll},  {".conllu", DataFormat::conll},
    {".bin", DataFormat::tokens},  {".npy", DataFormat::tokens},   {".txt", DataFormat::text},
    {".text", DataFormat::text},   {".md", DataFormat::text}};
// Endings of other programs' data files. A folder that has one is refused, so that no data is left out
// silently.
constexpr const char* foreign_endings[] = {".parquet", ".arrow", ".feather", ".gz",  ".zst", ".bz2",
                                           ".xz",      ".zip",   ".xlsx",    ".npz", ".pkl", ".pickle"};

// The format that the ending of the name stands for, if it is known.
std::optional<DataFormat> format_by_name(const std::string& path) {
  const auto found = std::find_if(std::begin(endings), std::end(endings),
                                  [&](const Ending& one) { return is_named(path, one.ending); });
  return found == std::end(endings) ? std::nullopt : std::optional(found->format);
}

// In the order of DataFormat.
constexpr const char* names_of_formats[] = {"text", "jsonl", "json", "csv", "tsv", "conll", "tokens"};
constexpr const char* descriptions[] = {"text", "JSON lines", "JSON", "CSV", "TSV", "CoNLL", "token ids"};
const char* described(DataFormat format) { return descriptions[static_cast<size_t>(format)]; }

enum class FormatKind { text, objects, table, words, tokens };  // files of one kind are read together
FormatKind kind_of(DataFormat format) {
  switch (format) {
    case DataFormat::jsonl:
    case DataFormat::json: return FormatKind::objects;
    case DataFormat::csv:
    case DataFormat::tsv: return FormatKind::table;
    case DataFormat::conll: return FormatKind::words;
    case DataFormat::tokens: return FormatKind::tokens;
    case DataFormat::text: break;
  }
  return FormatKind::text;
}

std::string beginning_of(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return read_text(path);  // says why
  std::string begin(begin_bytes, '\0');
  begin.resize(std::fread(begin.data(), 1, begin.size(), file.get()));
  return begin;
}

std::string_view without_space(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text;
}

// The JSON value at the beginning of a text, as it is written. Nothing if it is damaged.
std::optional<std::string_view> first_value(std::string_view text) {
  try {
    return JsonReader(text, "").skip();
  } catch (const Failure&) { return std::nullopt; }
}

// Whether an object has a member that examples have.
bool has_known_member(std::string_view object, const DataReading& reading) {
  constexpr std::string_view known[] = {"text",   "prompt",      "completion", "messages",  "conversations",
                                        "chosen", "rejected",    "tokens",     "words",     "labels",
                                        "label",  "instruction", "response",   "question",  "answer",
                                        "input",  "output",      "qas",        "paragraphs"};
  std::vector<std::string> names;
  for (const auto& [name, kind] : read_outline(object, "").members) names.push_back(name);
  return !pairs_among(names).empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return name == reading.text || name == reading.label ||
           std::find(std::begin(known), std::end(known), name) != std::end(known);
  });
}

// If a table has one of these columns, its records are examples, like JSON objects with one of these members.
constexpr std::string_view example_columns[] = {"prompt",        "completion", "messages",
                                                "conversations", "chosen",     "rejected"};

bool is_example_column(std::string_view name) {
  return std::find(std::begin(example_columns), std::end(example_columns), name) != std::end(example_columns);
}

[[noreturn]] void refuse_ambiguous(const std::string& path, const std::string& what, const char* format) {
  throw Failure(exit_failed, fmt::format("{}: {}; --data-format {} reads the file in that format and names "
                                         "the first error, --data-format text learns it as it is written",
                                         path, what, format));
}

// The name of an object's first member that is an array without elements, or with some; empty if there is
// none.
std::string array_in(std::string_view object, bool has_elements) {
  std::string name;
  JsonReader reader(object, "");
  reader.object([&](const std::string& key) {
    const std::string_view value = reader.skip();
    if (name.empty() && value.starts_with('[') &&
        without_space(value.substr(1)).starts_with(']') != has_elements)
      name = key;
  });
  return name;
}

// Refuses a file that is one object with all examples in a member, or with whole columns as members, and says
// how to convert it.
void refuse_wrapped(std::string_view object, const std::string& path, const DataReading& reading) {
  const Outline outline = read_outline(object, path);
  const auto is_column = [&](const auto& member) {
    const auto& [name, kind] = member;
    return (name == reading.text && kind == Json::Kind::array) ||
           (kind == Json::Kind::object && (name == reading.text || name == reading.label ||
                                           name == "prompt" || name == "completion" || name == "messages"));
  };
  if (std::any_of(outline.members.begin(), outline.members.end(), is_column))
    throw Failure(exit_failed, fmt::format("{}: is one object that has columns, expected one for each row; "
                                           "write it by pandas' to_json(…, orient='records', lines=True)",
                                           path));
  if (has_known_member(object, reading)) return;
  if (const std::string name = array_in(object, true); !name.empty())
    throw Failure(
        exit_failed,
        fmt::format("{0}: is one object, expected an array of them or one a line; take \"{1}\" out: "
                    "python3 -c \"import json; json.dump(json.load(open({2}))[{3}], open({4}, 'w'))\"",
                    path, shortened(name), python_string(path), python_string(name),
                    python_string(path + ".examples.json")));
  if (const std::string name = array_in(object, false); !name.empty())
    throw Failure(exit_failed,
                  fmt::format("{}: there is no data: its \"{}\" is an empty array", path, shortened(name)));
}

// Whether a file is SQuAD's: one object whose member "data" has objects with "paragraphs". `text` is the
// whole file.
bool has_articles(std::string_view text) {
  constexpr size_t looked_at = 65536;
  if (text.substr(0, looked_at).find("\"paragraphs\"") == std::string_view::npos) return false;
  bool found = false;
  try {
    JsonReader reader(text, "");
    reader.object([&](const std::string& key) {
      const std::string_view value = reader.skip();
      if (key != "data" || !value.starts_with('[')) return;
      const auto first = first_value(without_space(value.substr(1)));
      found = first && first->starts_with('{') && read_outline(*first, "").has("paragraphs");
    });
  } catch (const Failure&) { return false; }
  return found;
}

// The format of a file that begins with a brace. `text` is the whole file.
DataFormat format_of_objects(std::string_view text, const std::string& path,
                             std::optional<DataFormat> by_name, const DataReading& reading) {
  const bool is_json_by_name = by_name && kind_of(*by_name) == FormatKind::objects;
  const auto first = first_value(text);
  const DataFormat otherwise = is_json_by_name ? *by_name : by_name.value_or(DataFormat::text);
  const size_t end = first ? static_cast<size_t>(first->data() + first->size() - text.data()) : 0;
  const bool ends_line =
      first && is_blank(text.substr(end, std::min(text.find('\n', end), text.size()) - end));
  if (ends_line && first->find('\n') != std::string_view::npos) {  // written over several lines
    if (is_json_by_name && without_space(text.substr(end)).empty()) refuse_wrapped(*first, path, reading);
    return is_json_by_name || has_known_member(*first, reading) ? DataFormat::json : otherwise;
  }
  size_t lines = 0, objects = 0, known = 0;
  for_lines(text, [&](uint64_t, std::string_view line) {
    ++lines;
    const std::string_view here = without_space(line);
    const auto value = here.starts_with('{') ? first_value(here) : std::nullopt;
    const bool is_object = value && is_blank(here.substr(value->size()));
    objects += is_object;
    known += is_object && has_known_member(*value, reading);
    return lines < most_sampled;
  });
  if (is_json_by_name) {
    if (lines == 1 && objects == 1 && *by_name == DataFormat::json) refuse_wrapped(*first, path, reading);
    return DataFormat::jsonl;
  }
  if (objects == lines && known == lines) return DataFormat::jsonl;
  if (2 * known > lines)
    refuse_ambiguous(
        path,
        fmt::format("{} of its first {} lines are objects of JSON with examples, the others are not", known,
                    lines),
        "jsonl");
  if (objects == lines) {
    if (!by_name || *by_name != DataFormat::text) return DataFormat::jsonl;
    complain(
        "stowage: warning: {}: its lines are objects of JSON without a member that is known here; they are "
        "learned as they are written; --text-field NAME learns one of their members",
        path);
  }
  return otherwise;
}

// The format of a file that begins with a bracket; nothing if it is not JSON with examples.
std::optional<DataFormat> format_of_array(std::string_view text, std::optional<DataFormat> by_name,
                                          const DataReading& reading) {
  const std::string_view inside = without_space(text.substr(1));
  const bool is_json_by_name = by_name && kind_of(*by_name) == FormatKind::objects;
  const auto first = inside.starts_with('{') ? first_value(inside) : std::nullopt;
  if (is_json_by_name && (inside.starts_with('{') || *by_name == DataFormat::json)) return DataFormat::json;
  if (first && has_known_member(*first, reading)) return DataFormat::json;
  return std::nullopt;
}

// The fields of a text's first record, which names the columns of a table.
std::optional<std::vector<std::string>> columns_of(std::string_view text, char separator) {
  try {
    return CsvReader(text, "", separator).record();
  } catch (const Failure&) { return std::nullopt; }
}

bool has_column(const std::optional<std::vector<std::string>>& columns, const std::string& name) {
  return columns && std::find(columns->begin(), columns->end(), name) != columns->end();
}

constexpr char separators[] = {',', '\t', ';', '|'};

// The separator of a table's columns: `by_name`, unless only another one gives known columns.
char separator_of(std::string_view text, char by_name, const DataReading& reading) {
  const auto has_text = [&](char separator) {
    const auto columns = columns_of(text, separator);
    return has_column(columns, reading.text) || (columns && !pairs_among(*columns).empty()) ||
           (columns && columns->size() > 1 &&
            std::any_of(columns->begin(), columns->end(), is_example_column));
  };
  if (has_text(by_name)) return by_name;
  const auto other = std::find_if(std::begin(separators), std::end(separators), has_text);
  return other == std::end(separators) ? by_name : *other;
}

// Whether a table's columns make examples: only a text, or a column of example_columns. A table with both a
// text and a label holds texts with labels.
bool makes_examples(const std::vector<std::string>& columns, const DataReading& reading) {
  const auto has = [&](const std::string& name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  if (has(reading.text) && has(reading.label)) return false;
  return (columns.size() == 1 && has(reading.text)) ||
         std::any_of(columns.begin(), columns.end(), is_example_column);
}

// Whether the text has records, and each of the first most_sampled ones has as many fields as there are
// columns.
bool has_equal_records(std::string_view text, char separator, size_t columns, bool is_whole) {
  CsvReader reader(text, "", separator);
  reader.record();
  size_t records = 0;
  try {
    for (auto record = reader.record(); record && records < most_sampled; ++records, record = reader.record())
      if (record->size() != columns) return false;
  } catch (const Failure&) {  // an open quote; it may end past the part that was read
    if (is_whole) return false;
  }
  return records > 0;
}

// The separator of a file that is a table although its name does not say so; nothing if it is not a table. A
// table has columns for texts and labels, or those of examples, and the same number of fields in each record.
std::optional<char> separator_of_unnamed(std::string_view text, bool is_whole, const DataReading& reading) {
  for (const char separator : separators) {
    const auto columns = columns_of(text, separator);
    const auto has = [&](const std::string& name) { return has_column(columns, name); };
    const bool has_texts = has(reading.text) || (columns && !pairs_among(*columns).empty());
    const bool is_known = (has_texts && has(reading.label)) || (has("prompt") && has("completion")) ||
                          (has("chosen") && has("rejected"));
    if (is_known && has_equal_records(text, separator, columns->size(), is_whole)) return separator;
  }
  return std::nullopt;
}

// Throws if a file that should be JSON lines is a table. If it is neither, the reader will name the first
// line that is not JSON.
void refuse_table(std::string_view text, const std::string& path, bool is_whole) {
  const std::string_view first = without_space(text);
  if (first.empty() || first.find_first_of("{[") < first.find('\n')) return;
  for (const char separator : separators) {
    const auto columns = columns_of(text, separator);
    if (columns && columns->size() > 1 && has_equal_records(text, separator, columns->size(), is_whole))
      throw Failure(exit_failed,
                    fmt::format("{}: expected JSON lines, and it looks like a table with the columns {}; "
                                "--data-format {} reads it as one",
                                path, shortened(fmt::format("{}", fmt::join(*columns, ", ")), most_of_header),
                                separator == '\t' ? "tsv" : "csv"));
  }
}

// The format that a flag names, or nothing for auto.
std::optional<DataFormat> format_by_flag(const std::string& flag) {
  const auto found = std::find(std::begin(names_of_formats), std::end(names_of_formats), flag);
  return found == std::end(names_of_formats)
             ? std::nullopt
             : std::optional(static_cast<DataFormat>(found - std::begin(names_of_formats)));
}

// Finds the format of a file. `begin` is its beginning; whole() returns all of it.
template <class Whole>
void recognise(DataFile& file, std::string_view begin, bool is_whole, const DataReading& reading,
               const Whole& whole) {
  const auto by_name = format_by_name(file.path);
  const auto by_flag = format_by_flag(reading.format);
  const auto as = [&](DataFormat format) {
    file.format = format;
    file.is_by_content = !by_flag && format != by_name && (by_name || format != DataFormat::text);
  };
  if (by_flag && (*by_flag == DataFormat::text || *by_flag == DataFormat::tokens)) return as(*by_flag);
  if (!by_flag && by_name == DataFormat::tokens && !reading.has_bytes) return as(DataFormat::tokens);
  if (!by_flag && by_name == DataFormat::tokens) return as(DataFormat::text);
  if (!reading.has_ids || by_flag) refuse_foreign_file(begin, file.path);
  begin = without_mark(begin);
  const auto as_table = [&](DataFormat format) {
    file.separator = separator_of(begin, format == DataFormat::tsv ? '\t' : ',', reading);
    file.has_examples =
        makes_examples(columns_of(begin, file.separator).value_or(std::vector<std::string>()), reading);
    as(format);
  };
  if (by_flag == DataFormat::jsonl || by_flag == DataFormat::json) refuse_table(begin, file.path, is_whole);
  if (by_flag == DataFormat::json) file.has_articles = has_articles(without_mark(whole()));
  if (by_flag) return kind_of(*by_flag) == FormatKind::table ? as_table(*by_flag) : as(*by_flag);
  const std::string_view first = without_space(begin);
  if (first.starts_with('{')) {
    file.has_articles = has_articles(without_mark(whole()));
    if (file.has_articles) return as(DataFormat::json);
    const DataFormat format = format_of_objects(without_mark(whole()), file.path, by_name, reading);
    if (kind_of(format) == FormatKind::objects) return as(format);
  } else if (first.starts_with('[')) {
    if (const auto format = format_of_array(without_space(without_mark(whole())), by_name, reading))
      return as(*format);
  }
  if (by_name && kind_of(*by_name) == FormatKind::table) return as_table(*by_name);
  const bool is_json_by_name = by_name && kind_of(*by_name) == FormatKind::objects;
  if (by_name && *by_name != DataFormat::text && !is_json_by_name) return as(*by_name);
  if (reading.has_ids && !is_json_by_name) return as(DataFormat::tokens);
  if (const auto separator = separator_of_unnamed(begin, is_whole, reading); separator && !reading.has_ids)
    return as_table(*separator == '\t' ? DataFormat::tsv : DataFormat::csv);
  if (is_json_by_name) {
    refuse_table(begin, file.path, is_whole);
    return as(DataFormat::jsonl);
  }
  as(DataFormat::text);
}

// The files of a folder with known endings, in the order of the bytes of their names.
std::vector<std::string> files_of_folder(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (!open) read_text(folder);  // says why
  std::vector<std::string> found, others;
  while (const dirent* const entry = open ? ::readdir(open.get()) : nullptr) {
    const std::string name = entry->d_name, path = folder + (folder.ends_with('/') ? "" : "/") + name;
    if (name.starts_with('.')) continue;
    const auto is_foreign = [&](const char* ending) { return is_named(name, ending); };
    const bool is_data = !is_folder(path) && format_by_name(name);
    if (!is_folder(path) && std::any_of(std::begin(foreign_endings), std::end(foreign_endings), is_foreign))
      refuse_foreign_file(beginning_of(path), path);
    (is_data ? found : others).push_back(is_data ? path : name);
  }
  std::sort(found.begin(), found.end());
  std::sort(others.begin(), others.end());
  if (found.empty())
    throw Failure(exit_failed,
                  fmt::format("{}: is a folder without a file of data; expected .txt, .md, "
                              ".jsonl, .ndjson, .json, .csv, .tsv, .conll, .conllu, .bin or .npy",
                              folder));
  if (!others.empty())
    complain("stowage: warning: {}: {} of its entries {} left out: {}", folder, grouped(others.size()),
             others.size() == 1 ? "is" : "are", shortened(fmt::format("{}", fmt::join(others, ", ")), 160));
  return found;
}

std::vector<std::string> files_of_pattern(const std::string& pattern) {
  if (pattern.find("**") != std::string::npos)
    throw Failure(
        exit_usage,
        fmt::format("--data {}: ** is not supported; name each folder, as in a/*.jsonl b/*.jsonl", pattern));
  glob_t matches{};
  const int problem = ::glob(pattern.c_str(), 0, nullptr, &matches);
  std::vector<std::string> found;
  for (size_t i = 0; problem == 0 && i < matches.gl_pathc; ++i)
    if (!is_folder(matches.gl_pathv[i])) found.emplace_back(matches.gl_pathv[i]);
  ::globfree(&matches);
  std::sort(found.begin(), found.end());
  if (found.empty()) throw Failure(exit_failed, fmt::format("{}: no file matches this pattern", pattern));
  return found;
}

std::vector<std::string> all_files(const std::vector<std::string>& given) {
  std::vector<std::string> all;
  for (const std::string& one : given) {
    const std::vector<std::string> more = is_folder(one)         ? files_of_folder(one)
                                          : is_file_pattern(one) ? files_of_pattern(one)
                                                                 : std::vector{one};
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// Calls `object` for each element of an array, or for each of several objects in a row.
bool for_elements(std::string_view content, const std::string& path,
                  const std::function<bool(std::string_view, const std::string&)>& object) {
  JsonReader reader(content, path + ": damaged", 0, true);
  uint64_t line = 1, number = 0;
  const char* counted = content.data();
  const auto next = [&] {
    const std::string_view element = reader.skip();
    line += static_cast<uint64_t>(std::count(counted, element.data(), '\n'));
    counted = element.data();
    return object(element, fmt::format("{}, line {}, element {}", path, line, ++number));
  };
  if (!reader.take('[')) {
    while (!reader.at_end())
      if (!next()) return false;
    return true;
  }
  if (!reader.take(']')) {
    do
      if (!next()) return false;
    while (reader.take(','));
    reader.expect(']');
  }
  if (!reader.at_end()) reader.fail("expected the end of the text");
  return true;
}

// Calls `object` for each article of SQuAD's file.
bool for_articles(std::string_view content, const std::string& path,
                  const std::function<bool(std::string_view, const std::string&)>& object) {
  JsonReader reader(content, path + ": damaged", 0, true);
  bool goes_on = true;
  reader.object([&](const std::string& key) {
    if (key != "data" || !goes_on) return static_cast<void>(reader.skip());
    uint64_t number = 0;
    reader.list('[', ']', [&] {
      const std::string_view article = reader.skip();
      if (goes_on) goes_on = object(article, fmt::format("{}, article {}", path, ++number));
    });
  });
  if (!reader.at_end()) reader.fail("expected the end of the text");
  return goes_on;
}

// A field of a table as a JSON value. Columns of examples are strings. In other columns, numbers, true and
// false keep their type, and an empty field is null.
std::string json_of_field(const std::string& column, const std::string& field,
                          const std::string& text_member) {
  if (column == text_member || is_example_column(column) || column == "system") return json_quoted(field);
  std::string word = field;
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (word.empty()) return "null";
  if (word == "true" || word == "false") return word;
  const auto value = first_value(word);
  const bool is_number =
      value && value->size() == word.size() && (word[0] == '-' || (word[0] >= '0' && word[0] <= '9'));
  return is_number ? word : json_quoted(field);
}

// Calls `object` for each record of a table, as a JSON object.
bool for_records(std::string_view content, const DataFile& file, const std::string& text_member,
                 const std::function<bool(std::string_view, const std::string&)>& object) {
  CsvReader reader(content, file.path, file.separator);
  const auto header = reader.record();
  if (!header)
    throw Failure(exit_failed,
                  fmt::format("{}: expected a line that names the columns, found none", file.path));
  for (auto name = header->begin(); name != header->end(); ++name)
    if (std::count(header->begin(), header->end(), *name) > 1)
      throw Failure(exit_failed, fmt::format("{}: there are several columns \"{}\"", file.path, *name));
  reader.keep_blanks();
  while (const auto record = reader.row(header->size())) {
    std::string members;
    for (size_t i = 0; i < record->size(); ++i)
      members += fmt::format("{}{}: {}", members.empty() ? "" : ", ", json_quoted((*header)[i]),
                             json_of_field((*header)[i], (*record)[i], text_member));
    if (!object("{" + members + "}", reader.where())) return false;
  }
  return true;
}

}  // namespace

bool is_file_pattern(const std::string& given) {
  return given.find_first_of("*?[") != std::string::npos && !is_there(given);
}

std::string name_of_files(const std::vector<std::string>& given) {
  if (given.empty()) return {};
  return given.size() == 1 ? given[0] : fmt::format("{} and {} more", given[0], grouped(given.size() - 1));
}

DataSource::DataSource(const std::vector<std::string>& given, const DataReading& reading)
    : name_(name_of_files(given)), text_member_(reading.text) {
  for (const std::string& path : all_files(given)) {
    DataFile file;
    file.path = path;
    file.is_regular = may_be_read_again(path);
    std::shared_ptr<const std::string> content;
    const auto whole = [&]() -> const std::string& {
      if (!content) content = std::make_shared<const std::string>(read_text(path));
      return *content;
    };
    const std::string begin = file.is_regular ? beginning_of(path) : whole();
    recognise(file, begin, !file.is_regular || begin.size() < begin_bytes, reading, whole);
    if (!files_.empty() && kind_of(file.format) != kind_of(files_[0].format))
      throw Failure(exit_failed,
                    fmt::format("--data: {} is {}, and {} is {}; files of one kind are read together "
                                "(--data-format says which)",
                                files_[0].path, described(files_[0].format), path, described(file.format)));
    if (!files_.empty() && file.has_examples != files_[0].has_examples)
      throw Failure(exit_failed,
                    fmt::format("--data: one of {} and {} has columns of examples, and the other one has "
                                "texts with labels; files of one kind are read together",
                                files_[0].path, path));
    if (content && kind_of(file.format) != FormatKind::text && kind_of(file.format) != FormatKind::tokens)
      require_utf8_file(*content, path);
    if (const auto by_name = format_by_name(path);
        by_name && file.is_by_content && kind_of(*by_name) != kind_of(file.format))
      complain(
          "stowage: note: {}: is read as {} because of its content, and not as {}; --data-format overrides "
          "this",
          path, described(file.format), described(*by_name));
    files_.push_back(std::move(file));
    contents_.push_back(std::move(content));
  }
}

std::string DataSource::description() const {
  const DataFile& first = files_.at(0);
  const char* const columns = first.separator == ';'   ? " with semicolons"
                              : first.separator == '|' ? " with bars"
                              : first.format == DataFormat::csv && first.separator == '\t' ? " with tabs"
                              : first.format == DataFormat::tsv && first.separator == ','  ? " with commas"
                                                                                           : "";
  std::string text = fmt::format("{}{}", described(first.format), columns);
  if (files_.size() > 1) text = fmt::format("{} files of {}", grouped(files_.size()), text);
  if (std::any_of(files_.begin(), files_.end(), [](const DataFile& file) { return file.is_by_content; }))
    text += ", by its content";
  return text;
}

std::string_view DataSource::content(size_t file) const {
  auto& held = contents_.at(file);
  if (!held) {
    held = std::make_shared<const std::string>(read_text(files_[file].path));
    if (holds_examples()) require_utf8_file(*held, files_[file].path);
  }
  return has_tokens() ? std::string_view(*held) : without_mark(*held);
}

void DataSource::for_objects(const std::function<bool(std::string_view, const std::string&)>& object,
                             bool blank_ones) const {
  for (size_t i = 0; i < files_.size(); ++i) {
    const std::string& path = files_[i].path;
    bool goes_on = true;
    if (files_[i].has_articles) goes_on = for_articles(content(i), path, object);
    else if (files_[i].format == DataFormat::json) goes_on = for_elements(content(i), path, object);
    else if (kind_of(files_[i].format) == FormatKind::table)
      goes_on = for_records(content(i), files_[i], text_member_, object);
    else
      for_all_lines(content(i), [&](uint64_t number, std::string_view line) {
        return goes_on =
                   (!blank_ones && is_blank(line)) || object(line, fmt::format("{}, line {}", path, number));
      });
    if (!goes_on) return;
  }
}

void DataSource::forget() const {
  for (size_t i = 0; i < files_.size(); ++i)
    if (files_[i].is_regular) contents_[i].reset();
}

bool DataSource::is_one_regular_file() const { return files_.size() == 1 && files_[0].is_regular; }

void add_data_format_flag(CLI::App& command, std::string& format) {
  command
      .add_option(
          "--data-format", format,
          "The format of the files of --data. Default: auto, by their content, else by their endings.")
      ->check(CLI::IsMember({"auto", "text", "jsonl", "json", "csv", "tsv", "conll", "tokens"}))
      ->type_name("auto|text|jsonl|json|csv|tsv|conll|tokens");
}

namespace {

// Why a file has no data; empty if it may have some. `text`: the whole file.
std::string emptiness_of(std::string_view text, const DataFile& file) {
  if (text.empty()) return "the file is empty";
  const FormatKind kind = kind_of(file.format);
  if (kind == FormatKind::text || kind == FormatKind::tokens) return {};
  text = without_space(without_mark(text));
  if (text.empty()) return "the file has only blank lines";
  if (kind == FormatKind::table) {
    // Carriage returns alone end no line: reading the file shows where they are.
    if (text.substr(0, text.find_last_not_of(" \t\r\n") + 1).find('\r') != text.npos) return {};
    CsvReader reader(text, "", file.separator);
    try {
      return reader.record() && !reader.record() ? "the file has a line of column names alone" : "";
    } catch (const Failure&) { return {}; }  // reading it says why
  }
  const bool is_array = file.format == DataFormat::json && text.starts_with('[');
  return is_array && without_space(text.substr(1)).starts_with(']') ? "the file is an empty array" : "";
}

}  // namespace

void require_content(const DataSource& data) {
  std::string first;
  for (size_t i = 0; i < data.files().size(); ++i) {
    const DataFile& file = data.files()[i];
    const std::string begin = file.is_regular ? beginning_of(file.path) : std::string();
    const std::string_view held = file.is_regular ? begin : data.content(i);
    const std::string why = held.size() < begin_bytes ? emptiness_of(held, file) : std::string();
    if (why.empty()) return;
    if (first.empty()) first = fmt::format("{}: there is no data: {}", file.path, why);
  }
  if (!first.empty()) throw Failure(exit_failed, first);
}

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

}  // namespace command
