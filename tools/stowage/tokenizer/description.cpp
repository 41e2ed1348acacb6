#include "tokenizer/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/failure.h"
#include "base/json_value.h"
#include "tokenizer/description_parts.h"

namespace command {
namespace {

constexpr size_t most_steps = 64;  // of each kind

// Calls back for the parts of a "Sequence", or once for a single part. A null part has no call.
void for_parts(const JsonView& part, std::string_view list, const std::function<void(const JsonView&)>& read,
               size_t& steps) {
  if (type_of(part) == "Sequence")
    for (const JsonView& element : part.at(list).elements()) for_parts(element, list, read, steps);
  else if (++steps > most_steps) part.fail(fmt::format("at most {} steps, found more", most_steps));
  else read(part);
}
void for_parts(const JsonView& part, std::string_view list,
               const std::function<void(const JsonView&)>& read) {
  size_t steps = 0;
  if (!part.is_null()) for_parts(part, list, read, steps);
}

AddedToken read_added(const JsonView& token) {
  return {id_of(token.at("id")),
          token.at("content").text(),
          token.at("single_word").flag_or(false),
          token.at("lstrip").flag_or(false),
          token.at("rstrip").flag_or(false),
          token.at("normalized").flag_or(false),
          token.at("special").flag_or(false)};
}

// The file only decides on which side a text is truncated. The caller sets the length and which of two texts
// is truncated. "padding" is not read because the trainer pads.
bool read_truncates_left(const JsonView& truncation) {
  const std::string direction = truncation.at("direction").text_or("Right");
  if (direction != "Left" && direction != "Right") truncation.at("direction").fail("\"Left\" or \"Right\"");
  return direction == "Left";
}

}  // namespace

void refuse(const JsonView& part, const std::string& type) {
  throw Failure(exit_failed, fmt::format("{}: \"{}\" is not supported; convert the text to token ids with "
                                         "the library that made this file (--tokenizer ids)",
                                         part.place(), type));
}

void number_added_tokens(TokenizerDescription& out) {
  std::vector<AddedToken>& tokens = out.added;
  const std::vector<std::pair<std::string, int32_t>>& vocabulary = out.vocabulary;
  struct Place {
    int32_t id = -1;
    std::optional<size_t> index = {};
  };
  std::unordered_map<std::string_view, Place> places;  // by content
  for (const AddedToken& token : tokens) places.emplace(token.content, Place{});
  for (const auto& [content, id] : vocabulary)
    if (const auto found = places.find(content); found != places.end()) found->second.id = id;
  int32_t largest = -1;
  std::vector<AddedToken> numbered;
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    Place& place = places.at(token.content);
    if (place.id < 0) place.id = std::max(largest + 1, static_cast<int32_t>(vocabulary.size()));
    largest = std::max(largest, place.id);
    if (!place.index) {
      place.index = numbered.size();
      numbered.emplace_back();
    }
    numbered[*place.index] = token;  // the content may be repeated
    numbered[*place.index].id = place.id;
  }
  tokens = std::move(numbered);
}

std::string type_of(const JsonView& part) { return part.at("type").text(); }

int32_t id_of(const JsonView& id) { return static_cast<int32_t>(id.integer(largest_id)); }

TokenizerDescription read_tokenizer_description(std::string_view json, const std::string& path) {
  const Json value = read_json(json, path);
  const JsonView file(value, path + ": ");
  TokenizerDescription out;
  read_model(file.at("model"), out);
  if (const JsonView added = file.at("added_tokens"); !added.is_null())
    for (const JsonView& token : added.elements()) out.added.push_back(read_added(token));
  number_added_tokens(out);
  for_parts(file.at("normalizer"), "normalizers",
            [&](const JsonView& step) { read_normal(step, out.normal); });
  for_parts(file.at("pre_tokenizer"), "pretokenizers",
            [&](const JsonView& step) { read_cut(step, out.cuts); });
  if (out.of_bytes() && !std::holds_alternative<BytePairsDescription>(out.model))
    refuse(file.at("pre_tokenizer"), "ByteLevel");
  bool has_templates = false;
  for_parts(file.at("post_processor"), "processors", [&](const JsonView& step) {
    if (type_of(step) == "ByteLevel") return;  // ByteLevel changes no token
    if (has_templates) refuse(step, type_of(step));
    has_templates = true;
    read_post_processor(step, out);
  });
  for_parts(file.at("decoder"), "decoders", [&](const JsonView& step) {
    const std::string type = type_of(step);
    if (type == "ByteLevel" && !out.of_bytes()) refuse(step, type);
    if (type != "ByteLevel" && type != "Fuse") read_text_step(step, out.text_steps);
  });
  if (out.of_bytes() && !out.text_steps.empty()) refuse(file.at("decoder"), type_of(file.at("decoder")));
  out.truncates_left = read_truncates_left(file.at("truncation"));
  return out;
}

}  // namespace command
