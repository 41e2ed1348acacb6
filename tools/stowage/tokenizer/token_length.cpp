#include "tokenizer/token_length.h"

#include <fmt/format.h>

#include "base/failure.h"
#include "base/utf8.h"

namespace command {

void require_token_length(std::string_view token, const std::string& path) {
  if (token.size() > longest_token)
    throw Failure(exit_failed,
                  fmt::format("{}: model.vocab: expected tokens of at most {} bytes, found \"{}\" with {}",
                              path, longest_token, shortened(token), token.size()));
}

}  // namespace command
