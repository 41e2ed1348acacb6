// Files of token ids: raw (.bin) and NumPy arrays (.npy).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "data/data_source.h"
#include "data/tokenization.h"

namespace command {

inline constexpr const char* token_types[] = {"auto", "uint16", "uint32", "int32",
                                              "int64"};  // STW_TOKEN_TYPE_*
// The library's number (STW_TOKEN_TYPE_*) of one of these types.
uint32_t token_type_number(const std::string& name);
// Bytes of one id in a file of this --token-type. auto: the bytes that the vocabulary needs.
size_t bytes_of_type(const std::string& token_type, uint64_t vocabulary);

// The texts or token ids of all files, end to end, as the bytes of one file of tokens. If `document_end` is
// given, that token follows each file but the last. `token_type` is the type of ids (--token-type).
std::string tokens_of_files(const DataSource& data, const Tokenization& tokenization,
                            std::optional<uint32_t> document_end, uint64_t vocabulary,
                            const std::string& token_type);

}  // namespace command
