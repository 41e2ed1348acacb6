// BERT's vocab.txt, a token a line, with what a tokenizer_config.json beside it says, and transformers' defaults where it says nothing.
// Source: https://huggingface.co/docs/transformers/model_doc/bert#transformers.BertTokenizer
#pragma once
#include <string>

#include "description.h"

namespace command {

constexpr const char* vocabulary_file_name = "vocab.txt";
bool is_vocabulary_file(const std::string& path);   // as its name says

// Throws a Failure that names the file, or the one beside it, where it cannot be read, is damaged, or asks for what is not known here.
TokenizerDescription read_vocabulary_file(const std::string& path);

}  // namespace command
