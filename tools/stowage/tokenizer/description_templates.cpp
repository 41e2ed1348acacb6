#include <fmt/format.h>

#include <string>
#include <vector>

#include "tokenizer/description_parts.h"

namespace command {
namespace {

using Part = TemplatePart::Kind;

constexpr size_t most_parts = 64;  // parts of a template

std::vector<TemplatePart> read_template(const JsonView& pieces, const JsonView& specials, bool is_pair) {
  std::vector<TemplatePart> parts;
  bool has_first = false, has_second = false;
  for (const JsonView& piece : pieces.elements()) {
    if (parts.size() == most_parts) pieces.fail(fmt::format("at most {} pieces, found more", most_parts));
    if (const JsonView text = piece.at("Sequence"); !text.is_null()) {
      const bool is_second = text.at("id").text() == "B";
      if (is_second ? !is_pair : text.at("id").text() != "A")
        text.at("id").fail(is_pair ? "\"A\" or \"B\"" : "\"A\"");
      bool& has_it = is_second ? has_second : has_first;
      if (has_it) pieces.fail("each text once");  // a limit on tokens is undefined for a repeated text
      has_it = true;
      parts.push_back({is_second ? Part::second : Part::first, id_of(text.at("type_id"))});
    } else {
      const JsonView special = piece.at("SpecialToken");
      TemplatePart part{Part::special, id_of(special.at("type_id"))};
      for (const JsonView& id : specials.at(special.at("id").text()).at("ids").elements())
        part.tokens.push_back(id_of(id));
      parts.push_back(std::move(part));
    }
  }
  if (!has_first || has_second != is_pair) pieces.fail(is_pair ? "both texts" : "the text");
  return parts;
}

// ["[SEP]", 102]
int32_t read_named(const JsonView& token) {
  const std::vector<JsonView> parts = token.elements();
  if (parts.size() != 2) token.fail("a token and its number");
  return id_of(parts[1]);
}

}  // namespace

void set_roberta_templates(int32_t begin, int32_t end, TokenizerDescription& out) {
  out.single = {{Part::special, 0, {begin}}, {Part::first, 0}, {Part::special, 0, {end}}};
  out.pair = {{Part::special, 0, {begin}},
              {Part::first, 0},
              {Part::special, 0, {end, end}},
              {Part::second, 0},
              {Part::special, 0, {end}}};
}

void set_bert_templates(int32_t begin, int32_t end, TokenizerDescription& out) {
  out.single = {{Part::special, 0, {begin}}, {Part::first, 0}, {Part::special, 0, {end}}};
  out.pair = {{Part::special, 0, {begin}},
              {Part::first, 0},
              {Part::special, 0, {end}},
              {Part::second, 1},
              {Part::special, 1, {end}}};
}

void read_post_processor(const JsonView& step, TokenizerDescription& out) {
  const std::string type = type_of(step);
  if (type == "TemplateProcessing") {
    const JsonView specials = step.at("special_tokens"), pair = step.at("pair");
    out.single = read_template(step.at("single"), specials, false);
    if (!pair.is_null()) out.pair = read_template(pair, specials, true);
  } else if (type == "BertProcessing") {
    set_bert_templates(read_named(step.at("cls")), read_named(step.at("sep")), out);
  } else if (type == "RobertaProcessing") {
    // The options "trim_offsets" and "add_prefix_space" change offsets, not tokens.
    set_roberta_templates(read_named(step.at("cls")), read_named(step.at("sep")), out);
  } else {
    refuse(step, type);
  }
}

}  // namespace command
