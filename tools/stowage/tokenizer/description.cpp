#include "description.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string_view>

#include "../failure.h"
#include "../json_value.h"

namespace command {
namespace {

constexpr uint64_t largest_id = 0x7fffffff;
constexpr size_t most_steps = 64;   // of a kind
constexpr std::string_view word_mark = "\u2581";   // U+2581, of the "Metaspace"

// GPT-2's, which ByteLevel cuts by.
constexpr std::string_view gpt2_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

[[noreturn]] void refuse(const JsonView& part, const std::string& type) {
  throw Failure(exit_failed, fmt::format("{}: \"{}\" is not known to stowage; convert the text to token ids with the library that made this file "
                                         "(--tokenizer ids)", part.place(), type));
}

std::string type_of(const JsonView& part) { return part.at("type").text(); }

// The parts of a "Sequence", or the one that stands there; none where it is null.
void for_parts(const JsonView& part, std::string_view list, const std::function<void(const JsonView&)>& read, size_t& steps) {
  if (type_of(part) == "Sequence")
    for (const JsonView& element : part.at(list).elements()) for_parts(element, list, read, steps);
  else if (++steps > most_steps) part.fail(fmt::format("at most {} steps, found more", most_steps));
  else read(part);
}
void for_parts(const JsonView& part, std::string_view list, const std::function<void(const JsonView&)>& read) {
  size_t steps = 0;
  if (!part.is_null()) for_parts(part, list, read, steps);
}

SearchedText searched_of(const JsonView& pattern) {
  if (const JsonView regex = pattern.at("Regex"); !regex.is_null()) return {regex.text(), true};
  return {pattern.at("String").text(), false};
}

AddedToken read_added(const JsonView& token) {
  return {static_cast<int32_t>(token.at("id").whole(largest_id)), token.at("content").text(), token.at("single_word").flag_or(false),
          token.at("lstrip").flag_or(false), token.at("rstrip").flag_or(false), token.at("normalized").flag_or(false),
          token.at("special").flag_or(false)};
}

NormalStep read_normal(const JsonView& step) {
  using Kind = NormalStep::Kind;
  static const std::map<std::string_view, Kind> forms{{"NFC", Kind::nfc}, {"NFD", Kind::nfd}, {"NFKC", Kind::nfkc}, {"NFKD", Kind::nfkd}};
  const std::string type = type_of(step);
  if (const auto form = forms.find(type); form != forms.end()) return {form->second};
  if (type == "Prepend") return {Kind::prepend, {}, step.at("prepend").text()};
  if (type == "Replace") return {Kind::replace, searched_of(step.at("pattern")), step.at("content").text()};
  refuse(step, type);
}

CutStep::Prefix read_prefix(const JsonView& step, bool is_default) {
  const JsonView scheme = step.at("prepend_scheme");   // since 2024; before it, a flag
  if (scheme.is_null()) return step.at("add_prefix_space").flag_or(is_default) ? CutStep::Prefix::always : CutStep::Prefix::never;
  if (scheme.text() == "first") return CutStep::Prefix::first;
  if (scheme.text() == "always") return CutStep::Prefix::always;
  if (scheme.text() != "never") scheme.fail("\"first\", \"always\" or \"never\"");
  return CutStep::Prefix::never;
}

void read_cut(const JsonView& step, std::vector<CutStep>& cuts) {
  using Kind = CutStep::Kind;
  using Behavior = CutStep::Behavior;
  static const std::map<std::string_view, Behavior> behaviors{{"Removed", Behavior::removed}, {"Isolated", Behavior::isolated},
      {"MergedWithPrevious", Behavior::merged_with_previous}, {"MergedWithNext", Behavior::merged_with_next}, {"Contiguous", Behavior::contiguous}};
  const std::string type = type_of(step);
  if (!cuts.empty() && cuts.back().kind == Kind::bytes) throw Failure(exit_failed, fmt::format("{}: expected \"ByteLevel\" to be the last", step.place()));
  CutStep cut{Kind::matches};
  if (type == "Split") {
    const auto behavior = behaviors.find(step.at("behavior").text());
    if (behavior == behaviors.end()) refuse(step.at("behavior"), step.at("behavior").text());
    cut.behavior = behavior->second;
    cut.searched = searched_of(step.at("pattern"));
    cut.inverted = step.at("invert").flag_or(false);
    cuts.push_back(cut);
  } else if (type == "Digits") {
    cut.kind = Kind::digits;
    cut.behavior = step.at("individual_digits").flag_or(false) ? Behavior::isolated : Behavior::contiguous;
    cuts.push_back(cut);
  } else if (type == "ByteLevel") {
    CutStep bytes{Kind::bytes};
    bytes.prefix = step.at("add_prefix_space").flag_or(true) ? CutStep::Prefix::always : CutStep::Prefix::never;
    if (step.at("use_regex").flag_or(true)) bytes.searched = {std::string(gpt2_pattern), true};
    cuts.push_back(bytes);
  } else if (type == "Metaspace") {
    cut.kind = Kind::words;
    cut.searched = {step.at("replacement").text_or(word_mark), false};
    cut.prefix = read_prefix(step, true);
    cut.behavior = step.at("split").flag_or(true) ? Behavior::merged_with_next : Behavior::contiguous;
    cuts.push_back(cut);
  } else {
    refuse(step, type);
  }
}

// Of one text; how two are put together is for others.
void read_template(const JsonView& step, TokenizerDescription& out) {
  const JsonView specials = step.at("special_tokens");
  std::vector<int32_t>* side = &out.before;
  for (const JsonView& piece : step.at("single").elements()) {
    if (!piece.at("Sequence").is_null()) {
      side = &out.after;
      continue;
    }
    for (const JsonView& id : specials.at(piece.at("SpecialToken").at("id").text()).at("ids").elements())
      side->push_back(static_cast<int32_t>(id.whole(largest_id)));
  }
}

TextStep read_text_step(const JsonView& step) {
  using Kind = TextStep::Kind;
  const std::string type = type_of(step);
  if (type == "Replace") {
    const SearchedText searched = searched_of(step.at("pattern"));
    if (searched.is_pattern) refuse(step.at("pattern"), "Regex");
    return {Kind::replace, searched.text, step.at("content").text()};
  }
  if (type == "ByteFallback") return {Kind::bytes};
  if (type == "Strip") {
    if (step.at("stop").whole(largest_id) != 0) refuse(step.at("stop"), "stop");
    if (step.at("content").text().empty()) step.at("content").fail("a character");
    return {Kind::strip, step.at("content").text(), {}, step.at("start").whole(largest_id)};
  }
  if (type == "Metaspace") return {Kind::words, step.at("replacement").text_or(word_mark), " ", 0, read_prefix(step, true) != CutStep::Prefix::never};
  refuse(step, type);
}

void read_model(const JsonView& model, TokenizerDescription& out) {
  // Older files have no type where it is this one.
  if (const std::string type = model.at("type").text_or("BPE"); type != "BPE") refuse(model, type);
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    if (const JsonView part = model.at(key); !part.is_null() && !(part.is_text() && part.text().empty())) refuse(part, key);
  if (const JsonView unknown = model.at("unk_token"); !unknown.is_null()) out.unknown = unknown.text();
  out.fuses_unknown = model.at("fuse_unk").flag_or(false);
  out.byte_fallback = model.at("byte_fallback").flag_or(false);
  out.ignores_merges = model.at("ignore_merges").flag_or(false);
  const JsonView vocabulary = model.at("vocab"), merges = model.at("merges");
  for (const auto& [token, id] : vocabulary.members()) out.vocabulary.emplace_back(token, JsonView(id, vocabulary.place()).whole(largest_id));
  // "a b", or since 2024 ["a", "b"].
  for (const JsonValue& merge : merges.raw_elements()) {
    const auto& pair = merge.elements;
    const size_t space = merge.text.find(' ');
    if (pair.size() == 2)
      out.merges.emplace_back(JsonView(pair[0], merges.place()).text(), JsonView(pair[1], merges.place()).text());
    else if (space != std::string::npos && merge.text.find(' ', space + 1) == std::string::npos)
      out.merges.emplace_back(merge.text.substr(0, space), merge.text.substr(space + 1));
    else
      merges.fail("pairs of tokens");
  }
}

}  // namespace

TokenizerDescription read_tokenizer_description(std::string_view json, const std::string& path) {
  const JsonValue value = read_json(json, path);
  const JsonView file(value, path + ": ");
  TokenizerDescription out;
  read_model(file.at("model"), out);
  if (const JsonView added = file.at("added_tokens"); !added.is_null())
    for (const JsonView& token : added.elements()) out.added.push_back(read_added(token));
  for_parts(file.at("normalizer"), "normalizers", [&](const JsonView& step) { out.normal.push_back(read_normal(step)); });
  for_parts(file.at("pre_tokenizer"), "pretokenizers", [&](const JsonView& step) { read_cut(step, out.cuts); });
  for_parts(file.at("post_processor"), "processors", [&](const JsonView& step) {
    const std::string type = type_of(step);
    if (type == "TemplateProcessing") read_template(step, out);
    else if (type != "ByteLevel") refuse(step, type);   // which moves no token
  });
  for_parts(file.at("decoder"), "decoders", [&](const JsonView& step) {
    const std::string type = type_of(step);
    if (type == "ByteLevel" && !out.of_bytes()) refuse(step, type);
    if (type != "ByteLevel" && type != "Fuse") out.text_steps.push_back(read_text_step(step));
  });
  if (out.of_bytes() && !out.text_steps.empty()) refuse(file.at("decoder"), type_of(file.at("decoder")));
  return out;
}

}  // namespace command
