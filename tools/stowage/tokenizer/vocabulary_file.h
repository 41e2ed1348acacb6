// BERT's vocab.txt: one token a line. A tokenizer_config.json in the same folder sets options; transformers' defaults apply to the others.
// Source: https://huggingface.co/docs/transformers/model_doc/bert#transformers.BertTokenizer
#pragma once
#include <string>

#include "tokenizer/description.h"

namespace command {

constexpr const char* vocabulary_file_name = "vocab.txt";
bool is_vocabulary_file(const std::string& path);   // by its name

// Throws a Failure that names the file, or the one beside it, if it cannot be read, is damaged, or asks for something that is not supported.
TokenizerDescription read_vocabulary_file(const std::string& path);

}  // namespace command
