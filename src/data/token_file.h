// A file of tokens: bytes of a text, or ids as numbers of one type, bare or as a NumPy array. Read in pieces, never loaded.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "planner/base/result.h"
#include "src/files/file.h"
#include "src/base/hash.h"

namespace stw {

enum class TokenFormat : uint8_t {
  automatic,  // a name that ends in ".bin" or ".npy": ids; else bytes
  ids,        // as a NumPy array's header says; without one uint32 where the vocabulary exceeds 65,536, else uint16
  bytes,      // text: every byte is a token (the byte tokenizer)
  uint16, uint32, int32, int64,   // ids, little-endian
};

class TokenFile {
 public:
  // Checks that every token is below the vocabulary; `content` gets the tokens' bytes. Errors: io_error; corrupt (empty, a size that is no
  // multiple of a token's, a token outside of the vocabulary: naming its position and its id, a NumPy array of another kind, and what a failed
  // download left); bad_argument where ids without a header look like those of another type, unless the format says what they are.
  static Result<TokenFile> open(const std::string& path, TokenFormat format, int64_t vocabulary, Hash64& content);

  const std::string& path() const { return file_.path(); }
  uint64_t count() const { return count_; }
  // `out` and `content` may be null.
  Status read(uint64_t first, uint64_t count, int64_t vocabulary, int32_t* out, Hash64* content = nullptr) const;

 private:
  TokenFile(File file, TokenFormat format) : file_(std::move(file)), format_(format) {}
  template <class Token>
  Status read_as(uint64_t first, uint64_t count, int64_t vocabulary, int32_t* out, Hash64* content) const;
  Status find_array(TokenFormat asked);
  Status check_type(int64_t vocabulary, bool is_said) const;

  File file_;
  TokenFormat format_;    // neither automatic nor ids, once it is open
  uint64_t begin_ = 0;    // bytes in front of the tokens
  uint64_t count_ = 0;
  bool has_header_ = false;
};

}  // namespace stw
