// Reads the files in the folder of a tokenizer.json as transformers 5 (AutoTokenizer) does, and GPT-2's older
// pair vocab.json and merges.txt.
#pragma once
#include <string>

#include "tokenizer/description.h"

namespace command {

// Adds the tokens that only tokenizer_config.json, special_tokens_map.json or added_tokens.json has. Applies
// the settings of tokenizer_config.json that change tokens, or refuses them by name. Throws a Failure that
// names the file.
void read_folder_files(const std::string& path, TokenizerDescription& out);

constexpr const char *byte_pairs_vocabulary_name = "vocab.json", *byte_pairs_merges_name = "merges.txt";
bool is_byte_pairs_file(const std::string& path);  // by name: vocab.json
// Reads a vocab.json with the merges.txt in its folder, for the classes of GPT-2 and RoBERTa.
TokenizerDescription read_byte_pairs_files(const std::string& path);

// A shell command that writes a tokenizer.json into the folder.
std::string python_that_converts(const std::string& folder);

}  // namespace command
