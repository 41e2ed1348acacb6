#include "tokenizer/masking_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <variant>

#include "base/failure.h"
#include "base/files.h"
#include "base/json_value.h"
#include "tokenizer/description.h"

namespace command {
namespace {

// The mask_token of a file in the tokenizer's folder: a string, or an object with its content. Empty if there
// is none.
std::string mask_in(const std::string& path) {
  const auto text = read_text_if_there(path);
  if (!text) return {};
  const Json config = read_json(*text, path);
  const JsonView token = JsonView(config, path + ": ").at("mask_token");
  return token.is_null() || token.is_text() ? token.text_or("") : token.at("content").text();
}

std::optional<int32_t> token_named(const TokenizerDescription& tokenizer, std::string_view content) {
  for (const AddedToken& token : tokenizer.added)
    if (token.content == content) return token.id;
  for (const auto& [token, id] : tokenizer.vocabulary)
    if (token == content) return id;
  return std::nullopt;
}

std::optional<int32_t> find_mask(const TokenizerDescription& tokenizer, const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::string content = mask_in(folder + name);
    if (content.empty()) continue;
    const auto id = token_named(tokenizer, content);
    if (!id)
      throw Failure(exit_failed, fmt::format("{}{}: its mask_token \"{}\" is not a token of {}", folder, name,
                                             content, path));
    return id;
  }
  for (const AddedToken& token : tokenizer.added)
    if (token.special && (token.content == "[MASK]" || token.content == "<mask>")) return token.id;
  return std::nullopt;
}

// Prefixes of tokens that begin a word: white space as the vocabulary writes it. Empty if the tokenizer does
// not mark words.
std::vector<std::string> begins_of_words(const TokenizerDescription& tokenizer) {
  if (tokenizer.of_bytes()) return {"\u0120", "\u010a", "\u0109"};  // a space, a line feed and a tab
  for (const CutStep& step : tokenizer.cuts)
    if (step.kind == CutStep::Kind::words) return {step.searched.text};
  for (const NormalStep& step : tokenizer.normal)
    if (step.kind == NormalStep::Kind::replace && step.searched.text == " ") return {step.content};
  return {};
}

std::optional<std::vector<int32_t>> find_continuing(const TokenizerDescription& tokenizer) {
  const auto* const pieces = std::get_if<WordPiecesDescription>(&tokenizer.model);
  const std::vector<std::string> begins = pieces ? std::vector<std::string>{} : begins_of_words(tokenizer);
  if (pieces ? pieces->continuing_prefix.empty() : begins.empty()) return std::nullopt;
  std::vector<int32_t> continuing;
  for (const auto& [token, id] : tokenizer.vocabulary) {
    const auto is_begun_by = [&token = token](const std::string& begin) { return token.starts_with(begin); };
    if (pieces ? token.starts_with(pieces->continuing_prefix)
               : std::none_of(begins.begin(), begins.end(), is_begun_by))
      continuing.push_back(id);
  }
  return continuing;
}

}  // namespace

MaskingVocabulary read_masking_vocabulary(const std::string& path) {
  const TokenizerDescription tokenizer = read_description(path);
  MaskingVocabulary found{find_mask(tokenizer, path), {}, 0, find_continuing(tokenizer), {}, {}};
  for (const auto& [token, id] : tokenizer.vocabulary) found.end = std::max(found.end, id + 1);
  for (const AddedToken& token : tokenizer.added) {
    found.end = std::max(found.end, token.id + 1);
    if (token.special) found.special.push_back(token.id);
  }
  if (found.mask) found.special.push_back(*found.mask);
  bool is_after = false;
  for (const TemplatePart& part : tokenizer.single) {
    if (part.type != 0)
      throw Failure(
          exit_failed,
          fmt::format(
              "{}: gives the tokens of a text the type {}, which texts with hidden tokens cannot have", path,
              part.type));
    std::vector<int32_t>& side = is_after ? found.after : found.before;
    side.insert(side.end(), part.tokens.begin(), part.tokens.end());
    is_after = is_after || part.kind == TemplatePart::Kind::first;
  }
  for (const std::vector<int32_t>* side : {&found.before, &found.after})
    found.special.insert(found.special.end(), side->begin(), side->end());
  return found;
}

}  // namespace command
