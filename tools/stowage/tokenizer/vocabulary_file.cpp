#include "tokenizer/vocabulary_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/downloads.h"
#include "base/failure.h"
#include "base/json_value.h"
#include "base/lines.h"
#include "tokenizer/description_parts.h"
#include "tokenizer/folder_json.h"
#include "tokenizer/unicode.h"

namespace command {
namespace {

using Ids = std::map<std::string, int32_t, std::less<>>;  // token to id

constexpr std::string_view continuing_prefix = "##";
constexpr uint64_t most_characters = 100;  // of a word

// The id of a token is its line number. The last of equal lines counts.
Ids read_lines_of(const std::string& path) {
  const std::string text = read_model_file(path);
  require_utf8(text, path);
  Ids ids;
  std::string_view rest = without_mark(text);
  for (int32_t id = 0; !rest.empty(); ++id) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ids[std::string(line)] = id;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return ids;
}

void refuse_unless_empty(const JsonView& part, const char* what) {
  if (!part.is_null() && !(part.is_array() ? part.raw_elements().empty() : part.members().empty()))
    refuse(part, what);
}

// Other classes read a vocab.txt differently.
void require_known_class(const JsonView& config) {
  static constexpr std::string_view known[] = {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer",
                                               "MobileBertTokenizer"},
                                    fast = "Fast";
  const std::string name = config.at("tokenizer_class").text_or(known[0]);
  const std::string_view base =
      std::string_view(name).substr(0, name.size() - (name.ends_with(fast) ? fast.size() : 0));
  if (std::find(std::begin(known), std::end(known), base) == std::end(known))
    refuse(config.at("tokenizer_class"), name);
  if (!config.at("do_basic_tokenize").flag_or(true))
    refuse(config.at("do_basic_tokenize"), "do_basic_tokenize");
  for (const char* key : {"never_split", "additional_special_tokens", "extra_special_tokens"})
    refuse_unless_empty(config.at(key), key);
}

// A token with the options that an object sets.
AddedToken added_token(int32_t id, const std::string& content, const JsonView& object, bool is_special) {
  return {id,
          content,
          object.at("single_word").flag_or(false),
          object.at("lstrip").flag_or(false),
          object.at("rstrip").flag_or(false),
          object.at("normalized").flag_or(false),
          is_special};
}

// "added_tokens_decoder" maps ids to tokens. The vocabulary must have the same ids.
void read_added(const JsonView& tokens, const Ids& ids, std::vector<AddedToken>& out) {
  if (tokens.is_null()) return;
  for (const auto& [number, value] : tokens.members()) {
    const JsonView token(value, fmt::format("{}.{}", tokens.place(), number));
    const std::string content = token.at("content").text();
    const auto found = ids.find(content);
    if (found == ids.end() || std::to_string(found->second) != number)
      token.fail(fmt::format("the number of \"{}\" in {}", content, vocabulary_file_name));
    out.push_back(added_token(found->second, content, token, token.at("special").flag_or(false)));
  }
}

// "added_tokens.json" is an older file without the options of its tokens.
void require_nothing_added(const JsonView& tokens, const Ids& ids) {
  if (tokens.is_null()) return;
  for (const auto& [content, id] : tokens.members())
    if (const auto found = ids.find(content);
        found == ids.end() || text_of(id) != std::to_string(found->second))
      refuse(tokens, content);
}

// The special tokens of a folder. Each is a string, or an object with "content" and options.
struct SpecialTokens {
  AddedToken read(const char* key, const char* otherwise) const {
    const JsonView token = config.at(key).is_null() ? older.at(key) : config.at(key);
    const bool is_object = !token.is_null() && !token.is_text();
    const std::string content = is_object ? token.at("content").text() : token.text_or(otherwise);
    const auto found = ids.find(content);
    if (found == ids.end())
      throw Failure(exit_failed, fmt::format("{}: expected the {} \"{}\" among its lines, found none", path,
                                             key, content));
    if (is_object) return added_token(found->second, content, token, true);
    return {found->second, content, false, false, false, false, true};
  }

  const std::string& path;
  const Ids& ids;
  const JsonView &config, &older;
};

bool read_truncation_side(const JsonView& side) {
  const std::string word = side.text_or("right");
  if (word != "left" && word != "right") side.fail("\"left\" or \"right\"");
  return word == "left";
}

}  // namespace

bool is_vocabulary_file(const std::string& path) {
  return path == vocabulary_file_name || path.ends_with(fmt::format("/{}", vocabulary_file_name));
}

TokenizerDescription read_vocabulary_file(const std::string& path) {
  const Ids ids = read_lines_of(path);
  const FolderJson config_file(path, "tokenizer_config.json"), specials_file(path, "special_tokens_map.json"),
      added_file(path, "added_tokens.json");
  const JsonView config = config_file.view(), specials = specials_file.view();
  require_known_class(config);
  require_nothing_added(added_file.view(), ids);

  TokenizerDescription out;
  for (const auto& [token, id] : ids) out.vocabulary.emplace_back(token, id);
  read_added(config.at("added_tokens_decoder"), ids, out.added);
  const SpecialTokens special{path, ids, config, specials};
  const AddedToken unknown = special.read("unk_token", "[UNK]"), begin = special.read("cls_token", "[CLS]"),
                   end = special.read("sep_token", "[SEP]");
  out.added.insert(out.added.end(), {unknown, begin, end, special.read("pad_token", "[PAD]"),
                                     special.read("mask_token", "[MASK]")});

  const bool lowers = config.at("do_lower_case").flag_or(true);
  out.model = WordPiecesDescription{unknown.content, std::string(continuing_prefix), most_characters};
  add_bert_steps({true, config.at("tokenize_chinese_chars").flag_or(true),
                  config.at("strip_accents").flag_or(lowers), lowers},
                 out.normal);
  add_bert_cuts(out.cuts);
  set_bert_templates(begin.id, end.id, out);
  add_piece_steps(std::string(continuing_prefix), true, out.text_steps);
  out.truncates_left = read_truncation_side(config.at("truncation_side"));
  return out;
}

}  // namespace command
