#include "tokenizer/folder_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/failure.h"
#include "base/files.h"
#include "base/json_value.h"
#include "tokenizer/description_parts.h"
#include "tokenizer/folder_json.h"
#include "tokenizer/unicode.h"

namespace command {
namespace {

// In transformers' order, which decides the ids of new tokens.
constexpr std::array<const char*, 7> special_names = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                      "pad_token", "cls_token", "mask_token"};

// Default tokens of a class, for names that no file sets.
using NamedTokens = std::map<std::string_view, const char*>;
constexpr const char* gpt2_end = "<|endoftext|>";
const NamedTokens gpt2_tokens{{"bos_token", gpt2_end}, {"eos_token", gpt2_end}, {"unk_token", gpt2_end}};
const NamedTokens roberta_tokens{{"bos_token", "<s>"},    {"eos_token", "</s>"},  {"unk_token", "<unk>"},
                                 {"sep_token", "</s>"},   {"pad_token", "<pad>"}, {"cls_token", "<s>"},
                                 {"mask_token", "<mask>"}};

AddedToken token_of(const JsonView& object, bool is_special) {
  return {-1,
          object.at("content").text(),
          object.at("single_word").flag_or(false),
          object.at("lstrip").flag_or(false),
          object.at("rstrip").flag_or(false),
          object.at("normalized").flag_or(!is_special),
          is_special};
}
// A string, or an object with options.
AddedToken special_token_of(const JsonView& token) {
  if (token.is_text()) return {-1, token.text(), false, false, false, false, true};
  return token_of(token, true);
}

bool has_token(const std::vector<AddedToken>& tokens, const std::string& content) {
  return std::any_of(tokens.begin(), tokens.end(),
                     [&](const AddedToken& token) { return token.content == content; });
}

// The files of a folder. Some may be missing.
struct TokenFiles {
  explicit TokenFiles(const std::string& path)
      : config_file(path, "tokenizer_config.json"),
        map_file(path, "special_tokens_map.json"),
        added_file(path, "added_tokens.json"),
        config(config_file.view()),
        map(map_file.view()),
        added(added_file.view()) {}

  // The older files count only if the newer one does not list the added tokens.
  bool is_older() const { return config.at("added_tokens_decoder").is_null(); }
  JsonView special(const char* name) const {
    const JsonView newer = config.at(name), older = map.at(name);
    return is_older() && !older.is_null() ? older : newer;
  }
  std::string class_name() const {
    std::string name = config.at("tokenizer_class").text_or("");
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    return name;
  }

  FolderJson config_file, map_file, added_file;
  JsonView config, map, added;
};

std::vector<AddedToken> special_list(const JsonView& list) {
  std::vector<AddedToken> tokens;
  if (list.is_null()) return tokens;
  if (list.is_array())
    for (const JsonView& token : list.elements()) tokens.push_back(special_token_of(token));
  else
    for (const auto& [name, value] : list.members())
      tokens.push_back(special_token_of(JsonView(value, fmt::format("{}.{}", list.place(), name))));
  return tokens;
}

void add_named_tokens(const TokenFiles& files, const NamedTokens& standard, TokenizerDescription& out) {
  std::vector<AddedToken> named, more;
  for (const char* name : special_names) {
    const JsonView token = files.special(name);
    if (!token.is_null()) named.push_back(special_token_of(token));
    else if (const auto found = standard.find(name); found != standard.end())
      named.push_back({-1, found->second, false, false, false, false, true});
  }
  // Tokens with other names ("image_token"), at the top level or in an object. A list holds tokens without
  // names.
  if (!files.config.is_null())
    for (const auto& [name, value] : files.config.members())
      if ((value.is_string() || value.is_object()) && name.ends_with("_token") &&
          std::find(special_names.begin(), special_names.end(), name) == special_names.end())
        named.push_back(special_token_of(files.config.at(name)));
  // the second is the name before version 5
  const JsonView extra = files.special("extra_special_tokens"),
                 older_extra = files.special("additional_special_tokens");
  const bool has_list = extra.is_array();
  std::vector<JsonView> objects{files.config.at("model_specific_special_tokens")};
  if (!has_list) objects.push_back(extra);
  for (const JsonView& object : objects)
    for (AddedToken& token : special_list(object)) named.push_back(std::move(token));
  for (AddedToken& token : special_list(has_list ? extra : older_extra)) more.push_back(std::move(token));
  const auto is_special = [&](const std::string& content) {
    return has_token(named, content) || has_token(more, content);
  };

  std::map<int64_t, AddedToken> by_id;
  if (const JsonView decoder = files.config.at("added_tokens_decoder"); !decoder.is_null()) {
    for (const auto& [id, value] : decoder.members()) {
      const JsonView token(value, fmt::format("{}.{}", decoder.place(), id));
      if (id.empty() || id.size() > 9 || id.find_first_not_of("0123456789") != std::string::npos)
        token.fail("the number of a token as its name");
      const AddedToken read = token_of(token, token.at("special").flag_or(false));
      by_id.insert_or_assign(std::stoll(id), read);
    }
  } else if (!files.added.is_null()) {
    for (const auto& [content, id] : files.added.members()) {
      const bool special = is_special(content);
      by_id.insert_or_assign(id_of(JsonView(id, fmt::format("{}{}", files.added.place(), content))),
                             AddedToken{-1, content, false, false, false, !special, special});
    }
    for (const auto& entry : by_id)  // these options override all others of the token
      std::replace_if(
          named.begin(), named.end(),
          [&](const AddedToken& other) { return other.content == entry.second.content; }, entry.second);
    // A token or an id of the tokenizer's own file takes precedence.
    for (const AddedToken& own : out.added)
      std::erase_if(by_id, [&](const auto& token) {
        return token.first == own.id || token.second.content == own.content;
      });
  }
  // This class ignores the added tokens of tokenizer.json.
  if (files.class_name() == "GPT2Tokenizer" && !files.is_older()) out.added.clear();
  for (auto& [id, token] : by_id) {
    token.special = token.special || has_token(named, token.content);
    out.added.push_back(token);
  }
  const std::vector<AddedToken> known = out.added;
  for (const std::vector<AddedToken>* list : {&named, &more})
    for (const AddedToken& token : *list)
      if (!has_token(known, token.content) &&
          std::find(out.added.begin(), out.added.end(), token) == out.added.end())
        out.added.push_back(token);
  number_added_tokens(out);
}

[[noreturn]] void refuse_setting(const JsonView& setting, const std::string& why) {
  throw Failure(exit_failed, fmt::format("{}{}; write the same setting into both files, or convert the text "
                                         "to token ids with transformers (--tokenizer ids)",
                                         setting.place(), why));
}

std::optional<int32_t> id_in(const TokenizerDescription& d, const std::string& content) {
  for (const AddedToken& token : d.added)
    if (token.content == content) return token.id;
  for (const auto& [token, id] : d.vocabulary)
    if (token == content) return id;
  return std::nullopt;
}

// Special tokens around a text. transformers reads these settings only if there is no tokenizer.json.
void read_ends(const TokenFiles& files, TokenizerDescription& out) {
  const auto tokens = [&](const char* flag, const char* name) {
    std::vector<int32_t> ids;
    if (!files.config.at(flag).flag_or(false)) return ids;
    const JsonView token = files.special(name);
    // add_named_tokens() has added the token, so it has an id
    ids.push_back(*id_in(out, token.is_null() ? gpt2_end : special_token_of(token).content));
    return ids;
  };
  const std::vector<int32_t> before = tokens("add_bos_token", "bos_token"),
                             after = tokens("add_eos_token", "eos_token");
  using Part = TemplatePart::Kind;
  const auto around = [&](Part text, int32_t type, std::vector<TemplatePart>& parts) {
    if (!before.empty()) parts.push_back({Part::special, type, before});
    parts.push_back({text, type});
    if (!after.empty()) parts.push_back({Part::special, type, after});
  };
  out.single.clear();
  around(Part::first, 0, out.single);
  out.pair = out.single;
  around(Part::second, 1, out.pair);
}

// BERT's classes build their normalizer from these settings or their defaults, and ignore the one in the
// tokenizer's own file.
void check_normalizer(const TokenFiles& files, const std::vector<NormalStep>& steps) {
  using Kind = NormalStep::Kind;
  constexpr std::string_view classes[] = {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"};
  const bool is_bert =
      std::find(std::begin(classes), std::end(classes), files.class_name()) != std::end(classes);
  const auto has = [&](Kind kind) {
    return std::any_of(steps.begin(), steps.end(), [&](const NormalStep& step) { return step.kind == kind; });
  };
  bool lowers = has(Kind::lowercase);
  const auto check = [&](const char* name, bool does, bool otherwise) {
    const JsonView setting = files.config.at(name);
    const bool is_set = !setting.is_null(), wanted = setting.flag_or(is_set || is_bert ? otherwise : does);
    if (wanted != does)
      refuse_setting(
          files.config,
          is_set ? fmt::format("{} is {}, but the tokenizer's own file says {}", name, wanted, does)
                 : fmt::format("{} is not set, which {} takes as {}, but the tokenizer's own file says {}",
                               name, files.class_name(), wanted, does));
    return wanted;
  };
  lowers = check("do_lower_case", lowers, true);
  check("strip_accents", has(Kind::drop_nonspacing), lowers);
  check("tokenize_chinese_chars", has(Kind::spaces_around_ideographs), true);
}

// Some classes with unigram models, such as DeBERTa's, build their steps from these settings. A setting that
// is missing does not count: files of older versions of transformers have steps of their own.
void check_unigram_steps(const TokenFiles& files, const TokenizerDescription& d) {
  const auto check = [&](const char* name, bool says_true, bool says_false) {
    const JsonView setting = files.config.at(name);
    if (setting.is_null()) return;
    const bool wanted = setting.flag_or(false);
    if (wanted ? !says_true : !says_false)
      refuse_setting(files.config,
                     fmt::format("{} is {}, but the tokenizer's own file says {}", name, wanted, !wanted));
  };
  const bool lowers = std::any_of(d.normal.begin(), d.normal.end(), [](const NormalStep& step) {
    return step.kind == NormalStep::Kind::lowercase;
  });
  const bool splits = std::any_of(d.cuts.begin(), d.cuts.end(), [](const CutStep& step) {
    return step.kind == CutStep::Kind::punctuation;
  });
  check("do_lower_case", lowers, !lowers);
  check("split_by_punct", splits, !splits);
  for (const CutStep& step : d.cuts)
    if (step.kind == CutStep::Kind::words)
      check("add_prefix_space", step.prefix != CutStep::Prefix::never,
            step.prefix != CutStep::Prefix::always);
}

// Throws a Failure for settings that contradict the tokenizer's own file. Some classes of transformers build
// their steps from these settings, and ignore the steps of that file.
void check_settings(const TokenFiles& files, const TokenizerDescription& d) {
  const JsonView splits = files.config.at("split_special_tokens");
  if (splits.flag_or(false)) refuse(splits, "split_special_tokens");
  const bool is_generic =
      files.class_name() == "PreTrainedTokenizer" || files.class_name() == "TokenizersBackend";
  if (is_generic) return;
  const JsonView prefix = files.config.at("add_prefix_space");  // GPT-2's class defaults to false
  if (d.of_bytes() && (!prefix.is_null() || files.class_name() == "GPT2Tokenizer"))
    if (const bool has_prefix = d.cuts.back().prefix != CutStep::Prefix::never;
        prefix.flag_or(false) != has_prefix)
      refuse_setting(files.config, fmt::format("add_prefix_space is {}, but the tokenizer's own file says {}",
                                               !has_prefix, has_prefix));
  if (std::holds_alternative<WordPiecesDescription>(d.model)) check_normalizer(files, d.normal);
  if (std::holds_alternative<UnigramDescription>(d.model)) check_unigram_steps(files, d);
}

std::vector<std::pair<std::string, std::string>> read_merges(const std::string& path) {
  const std::string text = read_text(path);
  require_utf8(text, path);
  std::vector<std::pair<std::string, std::string>> merges;
  std::string_view rest = text;
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version")) continue;
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      throw Failure(exit_failed,
                    fmt::format("{}: line {}: expected two tokens with a space between them", path, number));
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

}  // namespace

std::string python_that_converts(const std::string& folder) {
  return fmt::format(
      "python -c \"from transformers import AutoTokenizer as A; "
      "A.from_pretrained('{0}').save_pretrained('{0}')\"",
      folder);
}

void read_folder_files(const std::string& path, TokenizerDescription& out) {
  const TokenFiles files(path);
  add_named_tokens(files, files.class_name() == "GPT2Tokenizer" ? gpt2_tokens : NamedTokens(), out);
  check_settings(files, out);
}

bool is_byte_pairs_file(const std::string& path) {
  return path == byte_pairs_vocabulary_name || path.ends_with(fmt::format("/{}", byte_pairs_vocabulary_name));
}

TokenizerDescription read_byte_pairs_files(const std::string& path) {
  const TokenFiles files(path);
  const FolderJson model(path, "config.json");
  const std::string type = model.view().at("model_type").text_or("");
  const std::string class_name = !files.class_name().empty() ? files.class_name()
                                 : type == "gpt2"            ? "GPT2Tokenizer"
                                 : type == "roberta"         ? "RobertaTokenizer"
                                                             : type;
  const bool is_roberta = class_name == "RobertaTokenizer";
  if (!is_roberta && class_name != "GPT2Tokenizer") {
    const std::string folder = folder_path_of(path);
    throw Failure(exit_failed,
                  fmt::format("{}: \"{}\" reads it in a way that is not supported; write a tokenizer.json "
                              "with transformers: {}",
                              path, class_name, python_that_converts(folder.empty() ? "." : folder)));
  }
  const std::string text = read_text(path);
  require_utf8(text, path);
  const Json value = read_json(text, path);
  const JsonView vocabulary(value, path + ": ");
  TokenizerDescription out;
  for (const auto& [token, id] : vocabulary.members())
    out.vocabulary.emplace_back(token, id_of(JsonView(id, vocabulary.place())));
  BytePairsDescription pairs;
  pairs.merges = read_merges(folder_path_of(path) + byte_pairs_merges_name);
  out.model = std::move(pairs);
  const Json bytes = read_json(fmt::format(R"({{"type": "ByteLevel", "add_prefix_space": {}}})",
                                           files.config.at("add_prefix_space").flag_or(false)),
                               path);
  read_cut(JsonView(bytes, path + ": "), out.cuts);
  if (is_roberta) {
    add_named_tokens(files, roberta_tokens, out);
    const auto special = [&](const char* name) {
      const JsonView token = files.special(name);
      // add_named_tokens() has added the token, so it has an id
      return *id_in(out, token.is_null() ? roberta_tokens.at(name) : special_token_of(token).content);
    };
    set_roberta_templates(special("cls_token"), special("sep_token"), out);
  } else {
    add_named_tokens(files, gpt2_tokens, out);
    read_ends(files, out);
  }
  check_settings(files, out);
  return out;
}

}  // namespace command
