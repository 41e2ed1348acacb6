#include "data/word_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/failure.h"
#include "base/units.h"
#include "base/utf8.h"
#include "data/tag_scheme.h"
#include "data/word_lines.h"

namespace command {
namespace {

using Line = const WordLine*;
using Values = std::set<std::string_view>;

constexpr const char* names_of_conllu[] = {"ID",    "FORM", "LEMMA",  "UPOS", "XPOS",
                                           "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"};
// The types of chunks in CoNLL-2003, and those of entities in GermEval 2014.
constexpr std::string_view chunk_types[] = {"NP",    "VP",  "PP",   "ADVP", "ADJP", "SBAR",
                                            "CONJP", "PRT", "INTJ", "LST",  "UCP",  "_"};
constexpr std::string_view germeval_types[] = {"PER",      "LOC",      "ORG",      "OTH",     "PERderiv",
                                               "LOCderiv", "ORGderiv", "OTHderiv", "PERpart", "LOCpart",
                                               "ORGpart",  "OTHpart",  "_"};

std::optional<int64_t> whole_number_in(std::string_view text) {
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::string capitals(std::string_view text) {
  std::string large(text);
  for (char& c : large)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return large;
}

// The value of an entry "name=value" between bars.
std::optional<std::string_view> entry_of(std::string_view field, std::string_view name) {
  for (size_t at = 0, end; at <= field.size(); at = end + 1) {
    end = std::min(field.find('|', at), field.size());
    const std::string_view entry = field.substr(at, end - at);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

template <size_t n>
bool have_types(const Values& tags, const std::string_view (&types)[n]) {
  return std::all_of(tags.begin(), tags.end(), [&](std::string_view tag) {
    return std::find(std::begin(types), std::end(types), read_tag(tag).type) != std::end(types);
  });
}

bool are_tags_of_entities(const Values& values) {
  return are_entity_tags(std::vector<std::string>(values.begin(), values.end()));
}

// Whether a column counts: 1 to n or 0 to n-1 in each text, or on through the whole file.
bool counts(const std::vector<Line>& lines, size_t column, bool through_file) {
  int64_t next = -1;
  uint64_t text = 0;
  size_t followed = 0;  // lines that follow another one of their text
  for (const Line line : lines) {
    const auto number = whole_number_in(line->fields[column]);
    if (!number) return false;
    const bool begins = next < 0 || (!through_file && line->text != text);
    if (begins ? *number != 0 && *number != 1 : *number != next) return false;
    followed += !begins;
    text = line->text, next = *number + 1;
  }
  return followed > 0 || lines[0]->fields.size() > 2;
}

// What a column is, as far as its values tell.
struct Column {
  Values values;
  bool counts = false;       // the words of a text
  bool has_numbers = false;  // alone
  bool has_tags = false;     // of entities alone, and not O alone
  bool has_outside = false;  // O alone
  bool is_constant() const { return values.size() == 1; }
};

// A column, or an entry of it.
struct Place {
  size_t column;
  std::string entry;
};

class ColumnFinder {
 public:
  ColumnFinder(const WordLines& all, const std::string& path, const LabelFields& fields, bool with_tags)
      : all_(all), path_(path), fields_(fields), with_tags_(with_tags) {
    for (const WordLine& line : all.lines)
      if (!line.is_sign) lines_.push_back(&line);
    if (lines_.empty())
      for (const WordLine& line : all.lines)
        if (line.fields.size() == all.columns) lines_.push_back(&line);
    is_of_signs_ = lines_[0]->is_sign;
    find_names();
    std::erase_if(lines_, [&](Line line) { return is_no_word(*line); });
    if (lines_.empty()) refuse("has no words", "");
    for (size_t c = 0; c < all.columns; ++c) columns_.push_back(column_at(c));
    tag_ = find_tag();
    word_ = find_word();
    check();
  }

  WordFile read() const {
    WordFile file;
    uint64_t comments = 0, no_words = 0, text = 0;
    const bool has_tags = with_tags_ && tag_;
    for (const WordLine& line : all_.lines) {
      if (is_comment(line)) {
        ++comments;
        continue;
      }
      if (is_no_word(line)) {
        ++no_words;
        continue;
      }
      if (file.texts.empty() || line.text != text) file.texts.push_back({{}, {}, line.number});
      text = line.text;
      if (line.fields[word_].empty())
        throw Failure(exit_failed, fmt::format("{}, line {}: the word, in column {}, is empty", path_,
                                               line.number, word_ + 1));
      file.texts.back().words.emplace_back(line.fields[word_]);
      if (has_tags) file.texts.back().tags.emplace_back(tag_of(line));
    }
    file.columns = dialect_ + (dialect_.empty() ? "" : ": ") + "words in " + name_of(word_);
    if (has_tags)
      file.columns += ", tags in " + name_of(tag_->column) +
                      (tag_->entry.empty() ? "" : fmt::format(", entry {}", tag_->entry));
    file.columns += fmt::format(" of {} between {}", all_.columns, all_.has_tabs ? "tabs" : "blanks");
    file.reading = file.columns;
    if (dialect_ == germeval) file.reading += "; column 4 has the inner tags";
    if (comments > 0) file.reading += fmt::format("; {} comments are left out", grouped(comments));
    if (no_words > 0)
      file.reading += fmt::format("; {} ranges and empty nodes are left out", grouped(no_words));
    return file;
  }

 private:
  static constexpr const char *conllu = "CoNLL-U", *germeval = "GermEval 2014", *conll2003 = "CoNLL-2003";

  // Ranges such as 1-2 and empty nodes such as 1.1 of CoNLL-U.
  bool is_no_word(const WordLine& line) const {
    return has_ids_ && line.fields.size() == all_.columns &&
           line.fields[0].find_first_of("-.") != std::string_view::npos;
  }

  void find_names() {
    constexpr std::string_view key = "global.columns";  // CoNLL-U Plus
    for (const WordLine& line : all_.lines)
      if (const size_t at = line.content.find(key); line.is_sign && at != std::string_view::npos) {
        std::string_view rest = line.content.substr(at + key.size());
        std::vector<std::string> names;
        for (size_t begin = rest.find_first_not_of("= \t"); begin != rest.npos;) {
          const size_t end = std::min(rest.find_first_of(" \t", begin), rest.size());
          names.push_back(capitals(rest.substr(begin, end - begin)));
          begin = rest.find_first_not_of(" \t", end);
        }
        if (names.size() == all_.columns) names_ = std::move(names), dialect_ = "CoNLL-U Plus";
      }
    if (names_.empty() && all_.has_tabs && all_.columns == std::size(names_of_conllu) && are_ids())
      names_.assign(std::begin(names_of_conllu), std::end(names_of_conllu)), dialect_ = conllu;
    has_ids_ = !names_.empty() && names_[0] == "ID";
  }

  // Whether the first column has ids of CoNLL-U, and its whole numbers count the words of each text.
  bool are_ids() const {
    std::vector<Line> words;
    for (const Line line : lines_) {
      const std::string_view id = line->fields[0];
      const size_t cut = id.find_first_of("-.");
      if (cut == id.npos) words.push_back(line);
      else if (!whole_number_in(id.substr(0, cut)) || !whole_number_in(id.substr(cut + 1))) return false;
    }
    return !words.empty() && counts(words, 0, false);
  }

  Column column_at(size_t c) const {
    Column column;
    for (const Line line : lines_) column.values.insert(line->fields[c]);
    const auto all = [&](const auto& is_one) {
      return std::all_of(column.values.begin(), column.values.end(), is_one);
    };
    column.has_numbers = all([](std::string_view value) { return whole_number_in(value).has_value(); });
    column.counts =
        column.has_numbers && (counts(lines_, c, false) || (lines_.size() > 2 && counts(lines_, c, true)));
    column.has_tags = are_tags_of_entities(column.values);
    column.has_outside = all([](std::string_view value) { return value == "O"; });
    return column;
  }

  // The column that a flag names; nothing if there is none.
  std::optional<Place> place_of(std::string_view value) const {
    const auto count = static_cast<int64_t>(all_.columns);
    if (const auto number = whole_number_in(value)) {
      if (*number == 0 || *number > count || *number < -count) return std::nullopt;
      return Place{static_cast<size_t>(*number > 0 ? *number - 1 : *number + count), ""};
    }
    const auto found = std::find(names_.begin(), names_.end(), capitals(value));
    if (found != names_.end()) return Place{static_cast<size_t>(found - names_.begin()), ""};
    const size_t colon = value.find(':');
    if (colon == value.npos || colon + 1 == value.size()) return std::nullopt;
    auto place = place_of(value.substr(0, colon));
    if (place) place->entry = value.substr(colon + 1);
    const auto has_entry = [&](Line line) {
      return entry_of(line->fields[place->column], place->entry).has_value();
    };
    return place && std::any_of(lines_.begin(), lines_.end(), has_entry) ? place : std::nullopt;
  }

  // The place that a flag names, or that the flag of the run names if the file has it.
  std::optional<Place> given(const char* flag, bool is_given, const std::string& value,
                             const std::string& of_run) const {
    if (!is_given) return of_run.empty() ? std::nullopt : place_of(of_run);
    const auto place = place_of(value);
    if (!place)
      throw Failure(
          exit_usage,
          fmt::format(
              "{} {}: {} has no such column: expected a number from 1 to {}, or -1 for the last one{}", flag,
              value, path_, all_.columns,
              names_.empty()
                  ? ""
                  : fmt::format(", or one of {}, or COLUMN:ENTRY, as MISC:name", fmt::join(names_, ", "))));
    return place;
  }

  std::optional<Place> find_tag() {
    if (const auto place = given("--label-field", fields_.label_given, fields_.label, fields_.run_label))
      return take_absent(*place);
    if (all_.columns == 1) {
      if (!with_tags_) return std::nullopt;
      throw Failure(exit_failed, fmt::format("{}, line {}: expected a word and its tag, found \"{}\"", path_,
                                             lines_[0]->number, shortened(lines_[0]->content)));
    }
    if (!names_.empty()) {
      if (with_tags_) refuse_named();
      return std::nullopt;
    }
    std::vector<size_t> tags, others;
    bool is_sure = false;
    for (size_t c = 0; c < all_.columns; ++c) {
      const Column& column = columns_[c];
      if (column.has_tags || column.has_outside) tags.push_back(c);
      is_sure = is_sure || column.has_tags;
      if (!column.counts) others.push_back(c);
    }
    if (const auto known = tag_of_dialect(tags)) return Place{*known, ""};
    if (tags.size() == 1 && (is_sure || tags[0] + 1 == all_.columns)) return Place{tags[0], ""};
    if (!with_tags_) return std::nullopt;
    if (tags.size() > 1) refuse(fmt::format("{} look like tags", listed(tags)), choices(tags));
    return tag_without_scheme(std::move(others));
  }

  // Words, and one column of other tags after them, as of parts of speech.
  Place tag_without_scheme(std::vector<size_t> others) const {
    const auto named = given("--text-field", fields_.text_given, fields_.text, fields_.run_text);
    const size_t word = named ? named->column : others.empty() ? 0 : others[0];
    std::erase(others, word);
    std::erase_if(others, [&](size_t c) { return others.size() > 1 && columns_[c].is_constant(); });
    if (others.size() > 1) refuse("it is not certain which column has the tags", choices(others));
    if (others.empty()) refuse("it has no column of tags beside that of the words", both_flags);
    const size_t words = columns_[word].values.size(), tags = columns_[others[0]].values.size();
    constexpr size_t few_lines = 10;
    if (lines_.size() >= few_lines && tags >= 2 * words)
      refuse(fmt::format("column {} would have the tags, but has {} different values, and column {} has {}",
                         others[0] + 1, grouped(tags), word + 1, grouped(words)),
             both_flags);
    return {others[0], ""};
  }

  // The column of tags in files that have several by a convention.
  std::optional<size_t> tag_of_dialect(const std::vector<size_t>& tags) {
    if (tags.size() != 2 || tags[1] + 1 != all_.columns || tags[0] + 1 != tags[1]) return std::nullopt;
    const Values &first = columns_[tags[0]].values, &last = columns_[tags[1]].values;
    const auto is_source = [](const WordLine& line) { return line.content.starts_with("#\t"); };
    const bool is_of_germeval = std::any_of(all_.lines.begin(), all_.lines.end(), is_source) ||
                                (have_types(first, germeval_types) && have_types(last, germeval_types));
    if (all_.columns == 4 && all_.has_tabs && columns_[0].counts && is_of_germeval) {
      dialect_ = germeval;
      return tags[0];
    }
    if (all_.columns < 4 || columns_[0].counts || !have_types(first, chunk_types)) return std::nullopt;
    if (!columns_[tags[1]].has_outside && have_types(last, chunk_types)) return std::nullopt;
    dialect_ = conll2003;
    return tags[1];
  }

  size_t find_word() const {
    if (const auto place = given("--text-field", fields_.text_given, fields_.text, fields_.run_text)) {
      if (place->entry.empty()) return place->column;
      throw Failure(exit_usage, fmt::format("--text-field {}: a word is a whole column, not an entry of one",
                                            fields_.text));
    }
    const auto form = std::find(names_.begin(), names_.end(), "FORM");
    if (form != names_.end()) return static_cast<size_t>(form - names_.begin());
    std::vector<size_t> others;
    for (size_t c = 0; c < all_.columns; ++c)
      if (!columns_[c].counts && !(tag_ && tag_->column == c)) others.push_back(c);
    const bool is_first = !tag_ || (!others.empty() && others[0] < tag_->column);
    if (others.size() > 1 && !is_first)
      std::erase_if(others, [&](size_t c) { return columns_[c].is_constant(); });
    if (others.empty() || (others.size() > 1 && !is_first))
      refuse("it is not certain which column has the words", flag_of_words);
    const Column& word = columns_[others[0]];
    if (word.has_tags && lines_.size() > 1)
      refuse(fmt::format("column {}, in which words are expected, has tags", others[0] + 1), both_flags);
    if (word.has_numbers && lines_.size() > 1)
      refuse(fmt::format("column {}, in which words are expected, has numbers alone", others[0] + 1),
             both_flags);
    return others[0];
  }

  void check() const {
    if (tag_ && tag_->column == word_ && with_tags_)
      throw Failure(exit_usage, fmt::format("{}: column {} would have both the words and the tags; {}", path_,
                                            word_ + 1, both_flags));
  }

  // The tag of a line without the entry.
  Place take_absent(const Place& place) {
    const auto has_tag = [&](Line line) {
      const auto value = entry_of(line->fields[place.column], place.entry);
      return !value || is_entity_tag(*value);
    };
    if (!place.entry.empty()) absent_ = std::all_of(lines_.begin(), lines_.end(), has_tag) ? "O" : "_";
    return place;
  }

  std::string_view tag_of(const WordLine& line) const {
    const std::string_view field = line.fields[tag_->column];
    return tag_->entry.empty() ? field : entry_of(field, tag_->entry).value_or(absent_);
  }

  // Whether a line that begins with # is a comment, and not a word such as #ship.
  bool is_comment(const WordLine& line) const {
    if (!line.is_sign) return false;
    if (line.fields.size() != all_.columns || has_ids_ || columns_[0].counts) return true;
    if (!line.is_first || is_of_signs_) return false;
    const std::string_view after = line.content.substr(line.content.find('#') + 1);
    const size_t begin = std::min(after.find_first_not_of(" \t"), after.size()),
                 end = std::min(after.find_first_of(" \t=", begin), after.size()),
                 next = std::min(after.find_first_not_of(" \t", end), after.size());
    if (begin > 0 && end > begin && after.substr(next).starts_with('=')) return true;  // # name = …
    if (all_.columns == 1) return false;
    const size_t tags = tag_ ? tag_->column : all_.columns - 1;
    const std::string_view tag = line.fields[tags];
    const auto has_tag = [&](const WordLine& one) {
      return one.is_sign && !one.is_first && one.fields[tags] == tag;
    };
    if (columns_[tags].values.count(tag) > 0 || std::any_of(all_.lines.begin(), all_.lines.end(), has_tag))
      return false;
    if (columns_[tags].has_tags || columns_[tags].has_outside) return !is_entity_tag(tag);
    throw Failure(
        exit_failed,
        fmt::format("{}, line {}: \"{}\" is a comment, or a word with a tag that no other line has; "
                    "write a comment as \"# name = text\"",
                    path_, line.number, shortened(line.content)));
  }

  std::string name_of(size_t column) const {
    return names_.empty() ? fmt::format("column {}", column + 1)
                          : fmt::format("column {} ({})", column + 1, names_[column]);
  }

  static std::string listed(const std::vector<size_t>& columns) {
    std::string text = "columns";
    for (size_t i = 0; i < columns.size(); ++i)
      text += fmt::format("{} {}", i == 0 ? "" : i + 1 == columns.size() ? " and" : ",", columns[i] + 1);
    return text;
  }

  static std::string choices(const std::vector<size_t>& columns) {
    std::string text = "choose the tags with ";
    for (size_t i = 0; i < columns.size(); ++i)
      text += fmt::format("{}--label-field {}",
                          i == 0                    ? ""
                          : i + 1 == columns.size() ? " or "
                                                    : ", ",
                          columns[i] + 1);
    return text;
  }

  // Refuses CoNLL-U without a flag: any of its columns may have the tags.
  [[noreturn]] void refuse_named() const {
    std::vector<std::string> found;
    for (size_t c = 0; c < all_.columns; ++c) {
      const std::string& name = names_[c];
      const bool is_of_words =
          name == "ID" || name == "FORM" || name == "LEMMA" || name == "HEAD" || name == "DEPS";
      if (name == "MISC")
        for (const std::string& entry : entries_with_tags(c)) found.push_back("--label-field MISC:" + entry);
      else if (!is_of_words && !columns_[c].is_constant()) found.push_back("--label-field " + name);
    }
    if (found.empty()) refuse(fmt::format("no column of {} has different tags", dialect_), "");
    refuse(fmt::format("{} has several columns of tags", dialect_),
           fmt::format("choose the tags with {}", fmt::join(found, " or ")));
  }

  // The entries of a column of which all values are tags of entities.
  std::vector<std::string> entries_with_tags(size_t column) const {
    std::map<std::string_view, Values> entries;
    for (const std::string_view field : columns_[column].values)
      for (size_t at = 0, end; at < field.size(); at = end + 1) {
        end = std::min(field.find('|', at), field.size());
        const size_t sign = field.find('=', at);
        if (sign < end) entries[field.substr(at, sign - at)].insert(field.substr(sign + 1, end - sign - 1));
      }
    std::vector<std::string> found;
    for (const auto& [name, values] : entries)
      if (are_tags_of_entities(values)) found.emplace_back(name);
    return found;
  }

  [[noreturn]] void refuse(const std::string& why, const std::string& advice) const {
    constexpr size_t shown_lines = 2, most = 20;
    std::string rows;
    for (size_t i = 0; i < std::min(shown_lines, lines_.size()); ++i) {
      rows += i == 0 ? "" : "; ";
      for (size_t c = 0; c < all_.columns; ++c)
        rows += fmt::format("{}[{}] {}", c == 0 ? "" : " ", c + 1, shortened(lines_[i]->fields[c], most));
    }
    throw Failure(exit_failed, fmt::format("{}: {}; its lines are read as {}{}{}", path_, why, rows,
                                           advice.empty() ? "" : "; ", advice));
  }

  static constexpr const char* flag_of_words =
      "name the column of words with --text-field N (1 is the first column, -1 the last one)";
  static constexpr const char* both_flags =
      "name the column of words with --text-field N, and that of tags with --label-field N (1 is the first "
      "column, -1 the last one)";

  const WordLines& all_;
  const std::string& path_;
  const LabelFields& fields_;
  const bool with_tags_;
  std::vector<Line> lines_;         // that have words for certain
  bool is_of_signs_ = false;        // all lines begin with #
  bool has_ids_ = false;            // of CoNLL-U, in the first column
  std::vector<std::string> names_;  // of columns; empty: they have numbers alone
  std::vector<Column> columns_;
  std::string dialect_, absent_;
  std::optional<Place> tag_;
  size_t word_ = 0;
};

}  // namespace

WordFile read_words(std::string_view content, const std::string& path, const LabelFields& fields,
                    bool with_tags) {
  const WordLines lines = word_lines(content, path);
  return lines.columns == 0 ? WordFile{} : ColumnFinder(lines, path, fields, with_tags).read();
}

}  // namespace command
