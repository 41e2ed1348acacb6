#include "data/word_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/failure.h"
#include "base/lines.h"
#include "base/utf8.h"

namespace command {
namespace {

constexpr std::string_view blanks = " \t\r", blanks_but_tabs = " \r";

std::string_view trimmed(std::string_view text, std::string_view blank) {
  const size_t begin = text.find_first_not_of(blank), end = text.find_last_not_of(blank);
  return begin == text.npos ? std::string_view() : text.substr(begin, end - begin + 1);
}

std::vector<std::string_view> fields_between_tabs(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t at = 0, end; at <= line.size(); at = end + 1) {
    end = std::min(line.find('\t', at), line.size());
    fields.push_back(trimmed(line.substr(at, end - at), blanks_but_tabs));
  }
  return fields;
}

std::vector<std::string_view> fields_between_blanks(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t at = line.find_first_not_of(blanks); at != line.npos;) {
    const size_t end = std::min(line.find_first_of(blanks, at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(blanks, end);
  }
  return fields;
}

std::vector<std::string_view> fields_of(std::string_view line, bool has_tabs) {
  return has_tabs ? fields_between_tabs(line) : fields_between_blanks(line);
}

// Separates the documents of CoNLL-2003.
bool separates_documents(std::string_view line) {
  constexpr std::string_view mark = "-DOCSTART-";
  return line.starts_with(mark) &&
         (line.size() == mark.size() || blanks.find(line[mark.size()]) != line.npos);
}

std::vector<WordLine> lines_with_words(std::string_view content) {
  std::vector<WordLine> lines;
  uint64_t text = 0;
  bool has_word = false;
  for_all_lines(content, [&](uint64_t number, std::string_view whole) {
    const std::string_view line = whole.substr(0, whole.find_last_not_of(blanks) + 1),  // keeps a first tab
        seen = trimmed(line, blanks);
    if (seen.empty() || separates_documents(seen)) {
      ++text, has_word = false;
      return true;
    }
    const bool is_sign = seen[0] == '#';
    lines.push_back({number, text, is_sign, !has_word, line, {}});
    has_word = has_word || !is_sign;
    return true;
  });
  return lines;
}

// The lines that have words for certain: those that do not begin with #, if there are any.
std::vector<const WordLine*> certain(const std::vector<WordLine>& lines) {
  std::vector<const WordLine*> found;
  for (const WordLine& line : lines)
    if (!line.is_sign) found.push_back(&line);
  if (found.empty())
    for (const WordLine& line : lines) found.push_back(&line);
  return found;
}

// The number of columns, if it is the same in all lines.
std::optional<size_t> columns_of(const std::vector<const WordLine*>& lines, bool has_tabs) {
  std::optional<size_t> columns;
  for (const WordLine* line : lines) {
    const size_t here = fields_of(line->content, has_tabs).size();
    if (columns && *columns != here) return std::nullopt;
    columns = here;
  }
  return columns;
}

// Whether the fields between tabs have as many parts between blanks in every line.
bool are_cut_alike(const std::vector<const WordLine*>& lines) {
  const auto parts_of = [](const WordLine* line) {
    std::vector<size_t> parts;
    for (const std::string_view field : fields_between_tabs(line->content))
      parts.push_back(fields_between_blanks(field).size());
    return parts;
  };
  const std::vector<size_t> first = parts_of(lines[0]);
  return std::all_of(lines.begin(), lines.end(),
                     [&](const WordLine* line) { return parts_of(line) == first; });
}

constexpr size_t columns_of_conllu = 10;

// Whether tabs alone separate columns.
bool has_tabs_alone(const std::vector<const WordLine*>& lines, const std::string& path) {
  const auto has_tab = [](const WordLine* line) {
    return line->content.find('\t') != std::string_view::npos;
  };
  if (!std::all_of(lines.begin(), lines.end(), has_tab)) return false;
  const auto by_tabs = columns_of(lines, true), by_blanks = columns_of(lines, false);
  if (!by_tabs) return !by_blanks;
  if (!by_blanks || *by_blanks == *by_tabs || *by_tabs == columns_of_conllu) return true;
  if (*by_blanks < *by_tabs) return false;  // several tabs in a row align the columns
  if (!are_cut_alike(lines)) return false;
  throw Failure(
      exit_failed,
      fmt::format("{}, line {}: expected columns between tabs or between blanks, found both in each line, {} "
                  "columns by tabs and {} by blanks: \"{}\"; if blanks separate columns too, replace them: "
                  "tr ' ' '\\t' <{}",
                  path, lines[0]->number, *by_tabs, *by_blanks, shortened(lines[0]->content), path));
}

}  // namespace

WordLines word_lines(std::string_view content, const std::string& path) {
  WordLines all;
  all.lines = lines_with_words(content);
  const std::vector<const WordLine*> words = certain(all.lines);
  if (words.empty()) return all;
  all.has_tabs = has_tabs_alone(words, path);
  all.columns = fields_of(words[0]->content, all.has_tabs).size();
  const uint64_t first = words[0]->number;
  for (WordLine& line : all.lines) {
    line.fields = fields_of(line.content, all.has_tabs);
    if (line.fields.size() == all.columns || (line.is_sign && line.is_first)) continue;
    throw Failure(
        exit_failed,
        fmt::format("{}, line {}: expected {} column{} between {}, as in line {}, found {}: \"{}\"", path,
                    line.number, all.columns, all.columns == 1 ? "" : "s", all.has_tabs ? "tabs" : "blanks",
                    first, line.fields.size(), shortened(line.content)));
  }
  return all;
}

}  // namespace command
