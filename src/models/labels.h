// What a config.json says of a classifier: transformers' …ForSequenceClassification, which looks at the last token of a text.
#pragma once
#include <string>
#include <vector>

#include "planner/json.h"
#include "planner/result.h"

namespace stw {

inline constexpr size_t largest_label_count = 1 << 20;

// The class of transformers that the config names, or nothing.
std::string class_of(const Json& config);
// The names of the labels by their number, of a classifier; none of another model. Errors: corrupt; unsupported_field where a text may
// have several labels, or a number in their place, and for heads of other kinds.
Result<std::vector<std::string>> read_labels(const Json& config);
// Errors: bad_argument: fewer than two, too many, one without a name or with one that is no text, one twice.
Status check_labels(const std::vector<std::string>& names);
// "LABEL_0", …: as transformers names those that have no name.
std::vector<std::string> unnamed_labels(size_t count);
// `class_name`: "Llama" of "LlamaForCausalLM". The end of text becomes what texts are padded with, where the config says nothing of that.
void write_labels(Json& config, const std::string& class_name, const std::vector<std::string>& names, int64_t vocabulary);
// What transformers pads texts with, so that it looks at a text's last token that is another one; -1: none.
int64_t padding_token(const Json& config, int64_t vocabulary);

}  // namespace stw
