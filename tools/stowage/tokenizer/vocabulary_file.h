// BERT's vocab.txt: one token a line. A tokenizer_config.json in the same folder sets options; transformers'
// defaults apply to the others. Source:
// https://huggingface.co/docs/transformers/model_doc/bert#transformers.BertTokenizer
#pragma once
#include <string>

#include "tokenizer/description.h"

namespace command {

constexpr const char* vocabulary_file_name = "vocab.txt";
bool is_vocabulary_file(const std::string& path);  // by name

// Throws a Failure that names the file if it, or a file in its folder, cannot be read, is damaged, or uses an
// unsupported feature.
TokenizerDescription read_vocabulary_file(const std::string& path);

}  // namespace command
