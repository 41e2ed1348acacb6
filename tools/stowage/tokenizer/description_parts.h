// Readers for the parts of a tokenizer.json.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.h"
#include "tokenizer/description.h"

namespace command {

constexpr uint64_t largest_id = 0x7fffffff;

// Throws a Failure that names the place and the unsupported value.
[[noreturn]] void refuse(const JsonView& part, const std::string& type);
std::string type_of(const JsonView& part);
int32_t id_of(const JsonView& id);

// Numbers added tokens. The library ignores the ids that the file gives them. A token of the vocabulary keeps
// its id. The others are numbered in order, starting at the size of the vocabulary. For a repeated content,
// the last token counts, at the place of the first.
void number_added_tokens(TokenizerDescription& out);

void read_model(const JsonView& model, TokenizerDescription& out);

void read_normal(const JsonView& step, std::vector<NormalStep>& out);
// The options of BERT's normalizer.
struct BertNormalizing {
  bool cleans, spaces_ideographs, strips_accents, lowers;
};
void add_bert_steps(const BertNormalizing& how, std::vector<NormalStep>& out);
void read_cut(const JsonView& step, std::vector<CutStep>& out);
void add_bert_cuts(std::vector<CutStep>& out);
void read_text_step(const JsonView& step, std::vector<TextStep>& out);
void add_piece_steps(const std::string& prefix, bool cleans_up, std::vector<TextStep>& out);

// Reads `single` and `pair`.
void read_post_processor(const JsonView& step, TokenizerDescription& out);
// [CLS] A [SEP] and [CLS] A [SEP] B [SEP]. B and the last [SEP] have type 1.
void set_bert_templates(int32_t begin, int32_t end, TokenizerDescription& out);
// <s> A </s> and <s> A </s></s> B </s>. All tokens have type 0.
void set_roberta_templates(int32_t begin, int32_t end, TokenizerDescription& out);

}  // namespace command
