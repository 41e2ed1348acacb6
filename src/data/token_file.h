// A file of tokens: the bytes of a text, or ids of one integer type, bare or as a NumPy array. It is read in
// pieces and never loaded as a whole.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "planner/base/result.h"
#include "src/base/hash.h"
#include "src/files/file.h"

namespace stw {

enum class TokenFormat : uint8_t {
  automatic,  // names that end in ".bin" or ".npy": ids; others: bytes
  // The type in a NumPy array's header. A file without a header has uint32 where the vocabulary exceeds
  // 65,536, else uint16.
  ids,
  bytes,  // text: every byte is a token (the byte tokenizer)
  uint16,
  uint32,
  int32,
  int64,  // ids, little-endian
};

class TokenFile {
 public:
  // Checks that every token is below the vocabulary, and adds the tokens' bytes to `content`. Errors:
  // io_error; corrupt (empty, a size that is no multiple of a token's, a token outside of the vocabulary,
  // with its position and id, an unsupported NumPy array, a failed download); bad_argument where ids without
  // a header look like another type, unless the format gives the type.
  static Result<TokenFile> open(const std::string& path, TokenFormat format, int64_t vocabulary,
                                Hash64& content);

  const std::string& path() const { return file_.path(); }
  uint64_t count() const { return count_; }
  // `out` and `content` may be null.
  Status read(uint64_t first, uint64_t count, int64_t vocabulary, int32_t* out,
              Hash64* content = nullptr) const;

 private:
  TokenFile(File file, TokenFormat format) : file_(std::move(file)), format_(format) {}
  template <class Token>
  Status read_as(uint64_t first, uint64_t count, int64_t vocabulary, int32_t* out, Hash64* content) const;
  Status find_array(TokenFormat requested);
  Status check_type(int64_t vocabulary, bool is_given) const;

  File file_;
  TokenFormat format_;  // neither automatic nor ids once the file is open
  uint64_t begin_ = 0;  // bytes before the tokens
  uint64_t count_ = 0;
  bool has_header_ = false;
};

}  // namespace stw
