// Texts through a trained model: generation, logits, classification.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/trainer/core.h"
#include "src/trainer/sampling.h"

namespace stw {

// A text for a classifier. `token_types`: one for each token; null where all are 0.
struct Text {
  const int32_t* tokens;
  uint64_t count;
  const int32_t* token_types;
};

struct GenerateOptions {
  const int32_t* prompt = nullptr;
  uint64_t prompt_count = 0;
  int32_t* out = nullptr;
  uint64_t out_capacity = 0;
  Sampling sampling = {};
  std::span<const int32_t> stop = {};  // tokens that end the answer
};

class TextRunner {
 public:
  explicit TextRunner(TrainerCore& core) : core_(core) {}
  // Allocates for the logits of one row. Call once, after the core was created.
  void reserve();

  // Samples tokens after the prompt into `out` and returns their number: out_capacity, or up to and including
  // the first stop token. Errors: unsupported (the model does not generate), unsupported_shape, bad_argument,
  // non_finite, cancelled.
  Result<uint64_t> generate(const GenerateOptions& options);
  // The logits of the token after `count` tokens, one for each token of the vocabulary, or the logits of a
  // classifier's labels. They are fp32, and valid until the next call that computes. Errors: unsupported (a
  // masked language model, or a model that labels each token), unsupported_shape, bad_argument, non_finite,
  // cancelled.
  Result<const float*> logits(const int32_t* tokens, uint64_t count);
  // Writes the logits of all labels for each text, texts · labels numbers. Where tokens have labels, it
  // writes them for each token of each text. Errors: unsupported (the model is no classifier),
  // unsupported_shape, bad_argument, non_finite, cancelled.
  Status classify(std::span<const Text> texts, float* out);
  // Errors: unsupported_shape where so many tokens do not fit a sample; the message begins with `what`.
  Status check_length(const std::string& what, uint64_t tokens) const;

 private:
  Result<uint64_t> make_text(const GenerateOptions& options);
  Result<const float*> make_logits(const Text& text);
  Status classify_all(std::span<const Text> texts, float* out);
  Result<const float*> feed(const int32_t* tokens, uint64_t count);
  Status check_tokens(const char* what, const int32_t* tokens, uint64_t count) const;  // Errors: bad_argument
  Status check_text(const std::string& what,
                    const Text& text) const;  // Errors: unsupported_shape, bad_argument
  bool are_finite(const float* logits) const;
  // For models that do not generate. Errors: cancelled.
  Status run_logits(std::span<const Text> texts, std::span<const uint64_t> begins);
  // The logits of a row, after `program` has run.
  Result<const float*> read_logits(const Program& program, uint64_t row);
  // The logits of consecutive rows.
  Status take_logits(const Program& program, uint64_t first, uint64_t rows, std::vector<std::byte>& raw,
                     float* out);

  TrainerCore& core_;
  std::vector<int32_t> fed_;            // tokens of a prompt
  std::vector<float> logits_;           // where the host cannot read them in the arena, or not as fp32
  std::vector<uint16_t> short_logits_;  // in 16 bits, as they are in the arena
};

}  // namespace stw
