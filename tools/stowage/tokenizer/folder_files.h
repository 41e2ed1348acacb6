// What the files beside a tokenizer.json say, as transformers 5 (AutoTokenizer) takes it; and GPT-2's older pair vocab.json and merges.txt.
#pragma once
#include <string>

#include "tokenizer/description.h"

namespace command {

// Tokens that only tokenizer_config.json, special_tokens_map.json or added_tokens.json has are added. Settings of tokenizer_config.json that change
// tokens are carried out, or refused by name. Throws a Failure that names the file.
void read_files_beside(const std::string& path, TokenizerDescription& out);

constexpr const char *byte_pairs_vocabulary_name = "vocab.json", *byte_pairs_merges_name = "merges.txt";
bool is_byte_pairs_file(const std::string& path);   // a vocab.json, by its name
// With the merges.txt beside it, for the classes of GPT-2 and RoBERTa.
TokenizerDescription read_byte_pairs_files(const std::string& path);

// A line for the shell that writes a tokenizer.json into the folder.
std::string python_that_converts(const std::string& folder);

}  // namespace command
