// Small configurations of every architecture, with what their tests need: sizes that are no multiples of tiles, matrices
// above and below the size from which states take 8 bits, grouped queries, tied and untied heads, biases and dropout.
#pragma once
#include "planner/numerics.h"
#include "src/random.h"
#include "tests/src/small_trainer.h"

namespace stw::testing_tools {

inline constexpr int64_t small_vocabulary = 61, small_positions = 40;

inline std::string small_gpt2(const char* dropout = "0") {
  const std::string p = dropout;
  return R"({"model_type": "gpt2", "vocab_size": 61, "n_positions": 40, "n_embd": 40, "n_layer": 3, "n_head": 4,
             "embd_pdrop": )" + p + R"(, "attn_pdrop": )" + p + R"(, "resid_pdrop": )" + p + "}";
}
inline std::string small_llama() {
  return R"({"model_type": "llama", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 48,
             "intermediate_size": 88, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2,
             "tie_word_embeddings": false})";
}
inline std::string small_qwen2() {
  return R"({"model_type": "qwen2", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 40,
             "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
             "tie_word_embeddings": true})";
}

// Random tokens, each predicting the next one; every fifth target is ignored.
inline GlobalBatch random_batch(uint64_t seed, int64_t samples, int64_t sequence, int64_t vocabulary = small_vocabulary) {
  GlobalBatch batch;
  batch.sequence = sequence;
  uint32_t counter = 0;
  auto draw = [&](uint64_t range) {
    const auto words = philox(seed, {counter++, 0, 0, 0});
    return static_cast<int32_t>(scale_to_range(uint64_t{words[0]} << 32 | words[1], range));
  };
  for (int64_t sample = 0; sample < samples; ++sample) {
    int32_t token = draw(static_cast<uint64_t>(vocabulary));
    for (int64_t i = 0; i < sequence; ++i) {
      batch.tokens.push_back(token);
      token = draw(static_cast<uint64_t>(vocabulary));
      batch.targets.push_back(draw(5) == 0 ? kernels::ignored_target : token);
    }
  }
  return batch;
}

inline void ignore_sample(GlobalBatch& batch, int64_t sample) {
  const auto begin = batch.targets.begin() + static_cast<std::ptrdiff_t>(sample * batch.sequence);
  std::fill(begin, begin + static_cast<std::ptrdiff_t>(batch.sequence), kernels::ignored_target);
}

}  // namespace stw::testing_tools
