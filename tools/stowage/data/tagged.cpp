#include "data/tagged.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/failure.h"
#include "base/json_value.h"
#include "base/units.h"
#include "base/utf8.h"
#include "data/hold_out.h"
#include "data/label_lists.h"
#include "data/loss_marks.h"
#include "data/new_head.h"
#include "data/tag_scheme.h"
#include "data/word_columns.h"
#include "tokenizer/unicode.h"

namespace command {
namespace {

constexpr std::string_view word_names[] = {"tokens", "words"}, tag_names[] = {"tags", "ner_tags", "labels"};

// The first member with one of these names; a view of null if there is none.
template <size_t n>
JsonView member_of(const JsonView& object, const std::string_view (&names)[n], const std::string* given) {
  if (given) return object.at(*given);
  for (const std::string_view name : names)
    if (const JsonView member = object.at(name); !member.is_null()) return member;
  return object.at(names[0]);
}

JsonView words_in(const JsonView& object, const LabelFields& fields) {
  return member_of(object, word_names, fields.text_given ? &fields.text : nullptr);
}
JsonView tags_in(const JsonView& object, const LabelFields& fields) {
  return member_of(object, tag_names, fields.label_given ? &fields.label : nullptr);
}

TaggedText tagged_text_of(std::string_view line, const std::string& place, const LabelFields& fields,
                          bool with_tags) {
  const auto is_used = [&](std::string_view key) {
    const auto is_one = [&](std::string_view name) { return key == name; };
    return key == fields.text || key == fields.label || is_loss_mark(key) ||
           std::any_of(std::begin(word_names), std::end(word_names), is_one) ||
           std::any_of(std::begin(tag_names), std::end(tag_names), is_one);
  };
  const Json value = read_object(line, place, is_used);
  JsonView(value, place).members();  // throws if it is not an object
  const JsonView object(value, place + ": ");
  TaggedText text;
  text.place = place;
  for (const JsonView& word : words_in(object, fields).elements()) text.words.push_back(word.text());
  if (!with_tags) return text;
  text.is_marked = loss_mark(object, Marked::example) == false;
  const JsonView tags = tags_in(object, fields);
  for (const JsonView& tag : tags.elements()) {
    const bool is_number = command::is_number(tag.raw());
    if (text.tags.empty()) text.has_numbers = is_number;
    if (text.has_numbers != is_number || (!is_number && !tag.is_text()))
      tag.fail(text.has_numbers ? "a number, as the first tag is" : "a string");
    text.tags.push_back(is_number ? fmt::format("{}", tag.integer(UINT32_MAX)) : tag.text());
  }
  return text;
}

// Reads the files of words. `reading` gets what was understood.
std::vector<TaggedText> read_conll(const DataSource& data, const LabelFields& fields, bool with_tags,
                                   std::string& reading) {
  std::vector<TaggedText> texts;
  std::string columns, first;  // of the first file
  for (size_t i = 0; i < data.files().size(); ++i) {
    const std::string& path = data.files()[i].path;
    WordFile file = read_words(data.content(i), path, fields, with_tags);
    if (file.texts.empty()) continue;
    if (first.empty()) columns = file.columns, reading = file.reading, first = path;
    if (file.columns != columns && !fields.label_given)
      throw Failure(exit_failed,
                    fmt::format("{} has {}, and {} has {}; read files of one format together, or name their "
                                "columns with --text-field and --label-field",
                                first, columns, path, file.columns));
    for (WordText& text : file.texts)
      texts.push_back(
          {std::move(text.words), std::move(text.tags), fmt::format("{}, line {}", path, text.line)});
  }
  return texts;
}

// If the tags are those of entities, 0 stands for O. Returns the name of their scheme, for people.
std::string take_scheme(std::vector<TaggedText>& texts) {
  std::vector<std::vector<std::string>> tags;
  for (const TaggedText& text : texts) {
    if (text.has_numbers) return "";
    tags.push_back(text.tags);
  }
  const std::string scheme = scheme_of(tags);
  if (scheme.empty()) return "";
  bool has_zero = false;
  for (TaggedText& text : texts)
    for (std::string& tag : text.tags)
      if (tag == "0") tag = "O", has_zero = true;
  return has_zero ? scheme + ", with 0 for O" : scheme;
}

}  // namespace

bool holds_tags(const DataSource& data, const LabelFields& fields) {
  if (data.is_conll()) return true;
  if (!data.holds_objects()) return false;
  bool found = false;
  data.for_objects([&](std::string_view text, const std::string& place) {
    const Outline object = read_outline(text, place);
    const auto first = std::find_if(std::begin(word_names), std::end(word_names),
                                    [&](std::string_view name) { return object.has(name); });
    const std::string_view name = fields.text_given               ? fields.text
                                  : first == std::end(word_names) ? word_names[0]
                                                                  : *first;
    found = object.kind_of(name) == Json::Kind::array;
    return false;
  });
  return found;
}

std::vector<TaggedText> read_tagged(const DataSource& data, const LabelFields& fields, bool with_tags,
                                    uint64_t* marked, std::string* reading) {
  const std::string& path = data.name();
  std::vector<TaggedText> texts;
  std::string columns;
  if (data.is_conll()) {
    texts = read_conll(data, fields, with_tags, columns);
  } else {
    data.for_objects([&](std::string_view text, const std::string& place) {
      texts.push_back(tagged_text_of(text, place, fields, with_tags));
      return true;
    });
  }
  if (texts.empty()) throw Failure(exit_failed, fmt::format("{}: expected texts of words, found none", path));
  const size_t out = std::erase_if(texts, [](const TaggedText& text) { return text.is_marked; });
  if (marked) *marked = out;
  if (texts.empty())
    throw Failure(exit_failed, fmt::format("{}: nothing to learn: all {} texts are marked out of the loss",
                                           path, grouped(out)));
  for (const TaggedText& text : texts) {
    if (text.words.empty() && with_tags)
      throw Failure(exit_failed, fmt::format("{}: expected at least one word, found none", text.place));
    if (!with_tags) continue;
    if (text.tags.size() != text.words.size())
      throw Failure(exit_failed, fmt::format("{}: expected a tag for each of {} words, found {}", text.place,
                                             grouped(text.words.size()), grouped(text.tags.size())));
    for (const std::string& tag : text.tags)
      if (tag.empty() || tag != valid_utf8(tag) || tag.find('\0') != std::string::npos)
        throw Failure(exit_failed,
                      fmt::format("{}: a tag {}", text.place,
                                  tag.empty() ? "is empty" : "is not UTF-8, or has a zero byte"));
  }
  const std::string scheme = with_tags ? take_scheme(texts) : "";
  if (reading)
    *reading = fmt::format("{}{}{}", columns, columns.empty() || scheme.empty() ? "" : "; ",
                           scheme.empty() ? "" : "scheme " + scheme);
  return texts;
}

std::vector<std::string> tags_of(std::span<const TaggedText> texts) {
  std::set<std::string> names;
  for (const TaggedText& text : texts) {
    if (text.has_numbers)
      throw Failure(exit_failed, fmt::format("{}: its tags are numbers; give their names with "
                                             "--label-names NAME,…, in the order of their numbers",
                                             text.place));
    names.insert(text.tags.begin(), text.tags.end());
  }
  return {names.begin(), names.end()};
}

std::string words_are_counted(std::span<const std::string> names) {
  const auto foreign =
      std::find_if(names.begin(), names.end(), [](const std::string& name) { return !is_entity_tag(name); });
  return fmt::format(
      "evaluations count words, not entities: {}",
      foreign == names.end()
          ? "the tags belong to no scheme"
          : fmt::format("the tag \"{}\" is not O, and not B- or I- with a type (nor E-, S-, L- "
                        "or U-)",
                        shortened(*foreign)));
}

std::vector<std::vector<uint32_t>> tag_numbers(std::span<const TaggedText> texts,
                                               std::span<const std::string> labels) {
  std::map<std::string_view, uint32_t> numbers;
  for (size_t i = 0; i < labels.size(); ++i) numbers.emplace(labels[i], static_cast<uint32_t>(i));
  const auto number_of = [&](const std::string& tag) {  // O and 0 are the same tag
    const auto found = numbers.find(tag);
    return found != numbers.end() ? found : numbers.find(tag == "O" ? "0" : tag == "0" ? "O" : tag);
  };
  std::vector<std::vector<uint32_t>> all;
  for (const TaggedText& text : texts) {
    all.emplace_back();
    for (const std::string& tag : text.tags) {
      uint32_t number = static_cast<uint32_t>(labels.size());
      if (text.has_numbers) std::from_chars(tag.data(), tag.data() + tag.size(), number);
      else if (const auto found = number_of(tag); found != numbers.end()) number = found->second;
      if (number >= labels.size())
        throw Failure(exit_failed, fmt::format("{}: \"{}\" is not one of the model's {}", text.place,
                                               shortened(tag), count_and_labels(labels)));
      all.back().push_back(number);
    }
  }
  return all;
}

std::vector<std::pair<size_t, size_t>> word_places(std::string_view text, const std::string& name) {
  require_utf8(text, name);
  std::vector<std::pair<size_t, size_t>> places;
  bool is_open = false;
  for (size_t at = 0; at < text.size();) {
    const Character c = first_character(text.substr(at));
    const bool is_sign = is_punctuation(c.code), is_between = is_space(c.code);
    if (!is_between && (!is_open || is_sign)) places.emplace_back(at, at);
    at += c.bytes;
    if (!is_between) places.back().second = at;
    is_open = !is_between && !is_sign;
  }
  return places;
}

EncodedWords tokens_of_words(std::span<const std::string> words, const std::string& place,
                             const Tokenization& tokenization, const stw_model_info& model, uint64_t most) {
  if (tokenization.kind() == Tokenization::Kind::ids)
    throw Failure(exit_usage, fmt::format("{}: is words; there is no tokenizer (--tokenizer)", place));
  EncodedWords encoded;
  std::vector<int32_t> of_word;  // the word of each token; -1: none
  if (tokenization.kind() == Tokenization::Kind::bytes) {
    for (size_t w = 0; w < words.size(); ++w) {
      if (w > 0) encoded.text.tokens.push_back(' '), of_word.push_back(-1);
      for (const int32_t token : tokenization.encode(words[w], place))
        encoded.text.tokens.push_back(token), of_word.push_back(static_cast<int32_t>(w));
    }
    encoded.text.is_cut = encoded.text.tokens.size() > most;
    if (encoded.text.is_cut) encoded.text.tokens.resize(most), of_word.resize(most);
  } else {
    EncodeOptions options;
    options.max_tokens = most;
    std::vector<std::string> spaced;
    if (tokenization.joins_words())
      for (const std::string& word : words) spaced.push_back(word.starts_with(' ') ? word : " " + word);
    Encoding encoding = tokenization.encode_words(
        spaced.empty() ? words : std::span<const std::string>(spaced), place, options);
    const bool has_types = std::any_of(encoding.token_types.begin(), encoding.token_types.end(),
                                       [](int32_t type) { return type != 0; });
    if (has_types && model.token_types < 2)
      throw Failure(exit_failed,
                    fmt::format("{}: the tokenizer gives tokens types, and the model has {} types of tokens",
                                place, model.token_types));
    if (!has_types) encoding.token_types.clear();
    encoded.text = {std::move(encoding.tokens), std::move(encoding.token_types), encoding.is_truncated};
    of_word = std::move(encoding.word_ids);
  }
  if (encoded.text.tokens.empty())
    throw Failure(exit_failed, fmt::format("{}: expected at least one token, found none", place));
  encoded.first.assign(words.size(), -1);
  for (size_t i = of_word.size(); i-- > 0;)
    if (of_word[i] >= 0) encoded.first[static_cast<size_t>(of_word[i])] = static_cast<int64_t>(i);
  return encoded;
}

std::vector<std::vector<float>> word_logits(stw_trainer* trainer, std::span<const EncodedWords> texts,
                                            size_t labels) {
  std::vector<EncodedText> list;
  for (const EncodedWords& text : texts) list.push_back(text.text);
  const std::vector<float> logits = label_logits(trainer, list, labels, true);
  std::vector<std::vector<float>> all;
  auto row = logits.begin();  // logits of the text's first token
  for (const EncodedWords& text : texts) {
    all.emplace_back();
    for (const int64_t first : text.first)
      if (first >= 0) {
        const auto begin = row + first * static_cast<std::ptrdiff_t>(labels);
        all.back().insert(all.back().end(), begin, begin + static_cast<std::ptrdiff_t>(labels));
      }
    row += static_cast<std::ptrdiff_t>(text.text.tokens.size() * labels);
  }
  return all;
}

Examples tagged_examples(std::span<const TaggedText> texts, std::span<const std::string> labels,
                         const Tokenization& tokenization, const stw_model_info& model, uint64_t sequence,
                         Order order) {
  const std::vector<std::vector<uint32_t>> numbers = tag_numbers(texts, labels);
  struct Document {
    EncodedText text;
    std::vector<uint32_t> labels;
    Origin origin;
  };
  std::vector<Document> documents;
  Examples all;
  for (size_t t = 0; t < texts.size(); ++t) {
    EncodedWords encoded = tokens_of_words(texts[t].words, texts[t].place, tokenization, model, sequence);
    all.counts.longer += encoded.text.is_cut;
    Document document{std::move(encoded.text), {}, {t + 1, texts[t].place}};
    document.labels.assign(document.text.tokens.size(), UINT32_MAX);
    for (size_t w = 0; w < encoded.first.size(); ++w) {
      if (encoded.first[w] >= 0) document.labels[static_cast<size_t>(encoded.first[w])] = numbers[t][w];
      all.counts.learned += encoded.first[w] >= 0;
      all.counts.unlearned += encoded.first[w] < 0;
    }
    documents.push_back(std::move(document));
  }
  shuffle(documents, order);
  if (order == Order::shuffled) {
    std::vector<size_t> lengths;
    LabelLists tags;
    for (const Document& document : documents) {
      lengths.push_back(document.labels.size());
      std::set<uint32_t> of_document(document.labels.begin(), document.labels.end());
      of_document.erase(UINT32_MAX);
      tags.add(std::vector<uint32_t>(of_document.begin(), of_document.end()));
    }
    keep_labels(documents, lengths, tags);
  }
  all.counts.examples = documents.size();
  for (const Document& document : documents) {
    all.origins.push_back(document.origin);
    for (size_t i = 0; i < document.labels.size(); ++i) {
      for (int byte = 0; byte < 4; ++byte) all.labels += static_cast<char>(document.labels[i] >> (8 * byte));
      all.marks += mark_of(document.text.token_types, i, document.origin.place);
    }
    all.tokens.insert(all.tokens.end(), document.text.tokens.begin(), document.text.tokens.end());
  }
  return all;
}

}  // namespace command
