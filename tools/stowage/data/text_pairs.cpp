#include "data/text_pairs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "base/csv.h"
#include "base/failure.h"
#include "base/json_value.h"
#include "base/messages.h"
#include "base/utf8.h"
#include "data/label_words.h"

namespace command {
namespace {

constexpr size_t most_looked_at = 20;  // objects or records

struct KnownPair {
  std::string_view first, second;
};
constexpr KnownPair known_pairs[] = {{"text", "text_pair"},
                                     {"text", "text2"},
                                     {"text", "text_2"},
                                     {"text", "text_b"},
                                     {"text1", "text2"},
                                     {"text_1", "text_2"},
                                     {"text_a", "text_b"},
                                     {"texta", "textb"},
                                     {"sentence1", "sentence2"},
                                     {"sentence_1", "sentence_2"},
                                     {"sentence_a", "sentence_b"},
                                     {"sentencea", "sentenceb"},
                                     {"sentence", "sentence2"},
                                     {"sent1", "sent2"},
                                     {"s1", "s2"},
                                     {"premise", "hypothesis"},
                                     {"question", "sentence"},
                                     {"question", "context"},
                                     {"question", "answer"},
                                     {"question", "passage"},
                                     {"question1", "question2"},
                                     {"question_1", "question_2"},
                                     {"q1", "q2"},
                                     {"query", "passage"},
                                     {"query", "document"},
                                     {"query", "text"},
                                     {"query", "product_title"},
                                     {"claim", "evidence"},
                                     {"first", "second"},
                                     {"string1", "string2"}};

// The names of a table's columns, or of the members of the first objects.
std::vector<std::string> names_in(const DataSource& data) {
  std::vector<std::string> names;
  if (data.is_table()) {
    CsvReader reader(data.content(0), data.files()[0].path, data.files()[0].separator);
    return reader.record().value_or(names);
  }
  size_t seen = 0;
  data.for_objects([&](std::string_view line, const std::string& place) {
    for (const auto& [name, kind] : read_outline(line, place).members)
      if (kind != Json::Kind::null && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    return ++seen < most_looked_at;
  });
  return names;
}

// A member other than the text that holds texts of several words in most of the first objects; else empty.
std::string other_texts(const DataSource& data, const LabelFields& fields) {
  std::map<std::string, size_t> counts;
  size_t seen = 0;
  data.for_objects([&](std::string_view line, const std::string& place) {
    const Json object = read_object(line, place, [](std::string_view) { return true; });
    for (const auto& [key, value] : object.members())
      counts[key] += key != fields.text && key != fields.label && value.is_string() &&
                     without_blanks(*value.as_string()).find(' ') != std::string_view::npos;
    return ++seen < most_looked_at;
  });
  for (const auto& [key, count] : counts)
    if (2 * count > seen) return key;
  return {};
}

void require_column(const DataSource& data, const LabelFields& fields,
                    const std::vector<std::string>& names) {
  if (fields.pair == fields.text)
    throw Failure(exit_usage, fmt::format("--pair-field {}: is the first text of a pair too (--text-field)",
                                          fields.pair));
  if (std::find(names.begin(), names.end(), fields.pair) == names.end())
    throw Failure(
        exit_failed,
        fmt::format("{}: there is no column \"{}\"; there are {} (--pair-field names another)", data.name(),
                    fields.pair, shortened(fmt::format("{}", fmt::join(names, ", ")), most_of_header)));
}

// --text-field names a text, or there is a text of the usual name: finds its partner.
void find_partner(const DataSource& data, LabelFields& fields, const std::vector<TextPair>& pairs) {
  for (const TextPair& pair : pairs)
    if (pair.first == fields.text) {
      fields.pair = pair.second;
      return;
    }
  if (!fields.text_given) return;
  for (const TextPair& pair : pairs)
    if (pair.second == fields.text) {
      complain(
          "stowage: warning: --text-field {1}: the other text of the pair, \"{0}\", is left out; "
          "--text-field "
          "{0} reads both, and --pair-field {0} reads it as the second one",
          pair.first, pair.second);
      return;
    }
  if (const std::string other = other_texts(data, fields); !other.empty())
    complain(
        "stowage: warning: --text-field {}: \"{}\" has texts too, and is left out; --pair-field {} reads it "
        "as "
        "the second text of a pair",
        fields.text, shortened(other), shortened(other));
}

}  // namespace

std::vector<TextPair> pairs_among(std::span<const std::string> names) {
  std::vector<TextPair> pairs;
  const auto find = [&](std::string_view known) {
    return std::find_if(names.begin(), names.end(),
                        [&](const std::string& name) { return without_case(name) == known; });
  };
  for (const KnownPair& known : known_pairs)
    if (const auto first = find(known.first), second = find(known.second);
        first != names.end() && second != names.end())
      pairs.push_back({*first, *second});
  return pairs;
}

void find_pair(const DataSource& data, LabelFields& fields) {
  const bool is_single = fields.pair_given && fields.pair == "none";
  if (is_single) fields.pair.clear();
  if (fields.pair.empty() && !is_single) return;
  const std::vector<std::string> names = names_in(data);
  const auto has = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<TextPair> pairs = pairs_among(names);
  std::erase_if(
      pairs, [&](const TextPair& pair) { return pair.first == fields.label || pair.second == fields.label; });
  if (is_single) {  // the first text of the pair is the text
    if (!fields.text_given && !has(fields.text) && pairs.size() == 1) fields.text = pairs[0].first;
    return;
  }
  if (fields.pair_given) {
    const auto known = std::find_if(pairs.begin(), pairs.end(),
                                    [&](const TextPair& pair) { return pair.second == fields.pair; });
    if (!fields.text_given && !has(fields.text) && known != pairs.end()) fields.text = known->first;
    return require_column(data, fields, names);
  }
  if (has(fields.pair) && (fields.text_given || has(fields.text))) return;
  if (fields.text_given || has(fields.text)) return find_partner(data, fields, pairs);
  if (pairs.size() > 1)
    throw Failure(
        exit_failed,
        fmt::format("{0}: expected one pair of texts, found \"{1}\" and \"{2}\", \"{3}\" and \"{4}\"; "
                    "name one with --text-field and --pair-field",
                    data.name(), pairs[0].first, pairs[0].second, pairs[1].first, pairs[1].second));
  if (pairs.size() == 1) fields.text = pairs[0].first, fields.pair = pairs[0].second;
}

bool has_label_member(const DataSource& data, const LabelFields& fields) {
  const std::vector<std::string> names = names_in(data);
  const auto has = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return has(fields.label) || (!fields.label_given && has("labels"));
}

}  // namespace command
