// Small configurations of every architecture with the properties that tests need: sizes that are no multiples
// of tiles, matrices above and below the size from which states take 8 bits, grouped queries, tied and untied
// heads, biases and dropout.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "planner/graph/adapters.h"

namespace stw::testing_tools {

inline constexpr int64_t small_vocabulary = 61, small_positions = 40;

// A large vocabulary: the table is filled, moved and saved in many pieces.
inline std::string gpt2_with_vocabulary(int tokens) {
  return R"({"model_type": "gpt2", "vocab_size": )" + std::to_string(tokens) +
         R"(, "n_positions": 40, "n_embd": 64, "n_layer": 1, "n_head": 4})";
}

// The configuration with a vocabulary of this size.
inline std::string with_vocabulary(std::string config, int64_t tokens) {
  const std::string name = "vocab_size\": ", small = std::to_string(small_vocabulary);
  return config.replace(config.find(name) + name.size(), small.size(), std::to_string(tokens));
}

// The configuration for samples of up to this many tokens.
inline std::string with_positions(std::string config, int positions) {
  const std::string short_one = std::to_string(small_positions);
  for (const char* name : {"n_positions\": ", "max_position_embeddings\": ", "seq_length\": "})
    if (const size_t at = config.find(name); at != std::string::npos)
      config.replace(at + std::string(name).size(), short_one.size(), std::to_string(positions));
  return config;
}

inline std::string small_gpt2(const char* dropout = "0") {
  const std::string p = dropout;
  return R"({"model_type": "gpt2", "vocab_size": 61, "n_positions": 40, "n_embd": 40, "n_layer": 3, )"
         R"("n_head": 4,
             "embd_pdrop": )" +
         p + R"(, "attn_pdrop": )" + p + R"(, "resid_pdrop": )" + p + "}";
}
inline std::string small_llama() {
  return R"({"model_type": "llama", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 48,
             "intermediate_size": 88, "num_hidden_layers": 3, "num_attention_heads": 6, )"
         R"("num_key_value_heads": 2,
             "tie_word_embeddings": false})";
}
inline std::string small_qwen2() {
  return R"({"model_type": "qwen2", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 40,
             "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 4, )"
         R"("num_key_value_heads": 2,
             "tie_word_embeddings": true})";
}

// Heads that do not fill the width, and norms of queries and keys.
inline std::string small_qwen3() {
  return R"({"model_type": "qwen3", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 40, )"
         R"("head_dim": 18,
             "intermediate_size": 72, "num_hidden_layers": 3, "num_attention_heads": 4, )"
         R"("num_key_value_heads": 2,
             "tie_word_embeddings": false})";
}

// Joined matrices, half of each head rotated, a window shorter than samples.
inline std::string small_phi3(const char* dropout = "0") {
  const std::string p = dropout;
  return R"({"model_type": "phi3", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 48, )"
         R"("original_max_position_embeddings": 20,
             "intermediate_size": 72, "num_hidden_layers": 3, "num_attention_heads": 4, )"
         R"("num_key_value_heads": 2, "partial_rotary_factor": 0.5,
             "rope_scaling": {"type": "longrope", "short_factor": [1, 1.5, 2], "long_factor": [2, 3, 4.5]}, )"
         R"("sliding_window": 7,
             "tie_word_embeddings": false, "attention_dropout": )" +
         p + R"(, "resid_pdrop": )" + p + "}";
}
// Layers of three kinds: with positions, without positions, and with positions and a window.
inline std::string small_smollm3() {
  return R"({"model_type": "smollm3", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 40,
             "intermediate_size": 72, "num_hidden_layers": 3, "num_attention_heads": 4, )"
         R"("num_key_value_heads": 2, "no_rope_layers": [1, 0, 0],
             "use_sliding_window": true, "sliding_window": 11, "layer_types": ["full_attention", )"
         R"("sliding_attention", "full_attention"],
             "tie_word_embeddings": true})";
}
// Norms before and after each part of a block, windows in two of three layers, heads that do not fill the
// width.
inline std::string small_gemma3() {
  return R"({"model_type": "gemma3_text", "vocab_size": 61, "max_position_embeddings": 40, )"
         R"("hidden_size": 40, "head_dim": 16,
             "intermediate_size": 72, "num_hidden_layers": 3, "num_attention_heads": 4, )"
         R"("num_key_value_heads": 2, "query_pre_attn_scalar": 12,
             "sliding_window": 9, "sliding_window_pattern": 2})";
}
// Six heads, so that ALiBi's slopes come from two sequences. Files have queries, keys and values head by
// head.
inline std::string small_bloom(const char* dropout = "0") {
  const std::string p = dropout;
  return R"({"model_type": "bloom", "vocab_size": 61, "seq_length": 40, "hidden_size": 48, "n_layer": 3, )"
         R"("n_head": 6,
             "attention_dropout": )" +
         p + R"(, "hidden_dropout": )" + p + "}";
}
inline std::vector<std::string> small_models(const char* dropout = "0") {
  return {small_gpt2(dropout), small_llama(),   small_qwen2(),  small_qwen3(),
          small_phi3(dropout), small_smollm3(), small_gemma3(), small_bloom(dropout)};
}

// The model as a classifier: with labels instead of a language model's head.
inline constexpr int64_t small_labels = 7;
inline std::string classifier_of(std::string config) {
  const auto is = [&](const char* type) {
    return config.find(std::string("\"model_type\": \"") + type + "\"") != config.npos;
  };
  const char* class_name = is("albert")                          ? "Albert"
                           : is("bert")                          ? "Bert"
                           : is("roberta")                       ? "Roberta"
                           : is("distilbert")                    ? "DistilBert"
                           : is("electra")                       ? "Electra"
                           : is("modernbert")                    ? "ModernBert"
                           : is("deberta-v2")                    ? "DebertaV2"
                           : is("bloom")                         ? "Bloom"
                           : config.find("gpt2") != config.npos  ? "GPT2"
                           : config.find("qwen2") != config.npos ? "Qwen2"
                           : config.find("qwen3") != config.npos ? "Qwen3"
                                                                 : "Llama";
  std::string head =
      std::string("{\"architectures\": [\"") + class_name + "ForSequenceClassification\"], \"id2label\": {";
  for (int64_t i = 0; i < small_labels; ++i)
    head += (i ? ", \"" : "\"") + std::to_string(i) + "\": \"label " + std::to_string(i) + "\"";
  return head + "}, " + config.substr(1);
}

// The model with one of these labels for each token.
inline std::string token_classifier_of(const std::string& config) {
  std::string labelled = classifier_of(config);
  const std::string of_texts = "ForSequenceClassification";
  return labelled.replace(labelled.find(of_texts), of_texts.size(), "ForTokenClassification");
}

// The model with the head that finds an answer in a text.
inline std::string spans_of(const std::string& config) {
  std::string labelled = classifier_of(config);
  const std::string of_texts = "ForSequenceClassification";
  labelled.replace(labelled.find(of_texts), of_texts.size(), "ForQuestionAnswering");
  return labelled.substr(0, labelled.find("\"id2label\"")) + config.substr(1);
}

// An encoder with the head of a masked language model.
inline std::string masked_of(const std::string& config) {
  const auto is = [&](const char* type) {
    return config.find(std::string("\"model_type\": \"") + type + "\"") != config.npos;
  };
  const char* class_name = is("bert")         ? "Bert"
                           : is("roberta")    ? "Roberta"
                           : is("distilbert") ? "DistilBert"
                           : is("albert")     ? "Albert"
                           : is("modernbert") ? "ModernBert"
                           : is("deberta-v2") ? "DebertaV2"
                                              : "Electra";
  return std::string("{\"architectures\": [\"") + class_name + "ForMaskedLM\"], " + config.substr(1);
}

// A classifier's configuration with another task, in transformers' words.
inline std::string with_problem(const std::string& classifier, const char* problem_type) {
  return std::string("{\"problem_type\": \"") + problem_type + "\", " + classifier.substr(1);
}
inline std::string of_labels(const std::string& config) {
  return with_problem(classifier_of(config), "multi_label_classification");
}
inline std::string of_numbers(const std::string& config) {
  return with_problem(classifier_of(config), "regression");
}

// Encoders without a head.
inline std::string small_bert(const char* dropout = "0") {
  const std::string p = dropout;
  return R"({"model_type": "bert", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 40, )"
         R"("num_hidden_layers": 3, "num_attention_heads": 5,
             "intermediate_size": 72, "hidden_dropout_prob": )" +
         p + R"(, "attention_probs_dropout_prob": )" + p + "}";
}
// Its position table has two more rows, which no token uses.
inline std::string small_roberta(const char* dropout = "0") {
  const std::string p = dropout;
  return R"({"model_type": "roberta", "vocab_size": 61, "max_position_embeddings": 42, )"
         R"("type_vocab_size": 1, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
             "intermediate_size": 72, "layer_norm_eps": 1e-5, "hidden_dropout_prob": )" +
         p + R"(, "attention_probs_dropout_prob": )" + p + "}";
}
inline std::string small_distilbert(const char* dropout = "0") {
  const std::string p = dropout;
  return R"({"model_type": "distilbert", "vocab_size": 61, "max_position_embeddings": 40, "dim": 40, )"
         R"("n_layers": 3, "n_heads": 4, "hidden_dim": 72,
             "dropout": )" +
         p + R"(, "attention_dropout": )" + p + R"(, "seq_classif_dropout": )" + p + "}";
}
// The embeddings are narrower than the blocks.
inline std::string small_electra(const char* dropout = "0") {
  const std::string p = dropout;
  return R"({"model_type": "electra", "vocab_size": 61, "max_position_embeddings": 40, )"
         R"("embedding_size": 24, "hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4,
             "intermediate_size": 72, "hidden_dropout_prob": )" +
         p + R"(, "attention_probs_dropout_prob": )" + p + "}";
}
// The blocks share their parameters, and the embeddings are narrower than the blocks.
inline std::string small_albert(const char* dropout = "0", int layers = 3) {
  const std::string p = dropout;
  return R"({"model_type": "albert", "vocab_size": 61, "max_position_embeddings": 40, "embedding_size": 24, )"
         R"("hidden_size": 40, "num_hidden_layers": )" +
         std::to_string(layers) +
         R"(, "num_attention_heads": 4, "intermediate_size": 112, "hidden_dropout_prob": )" + p +
         R"(, "attention_probs_dropout_prob": )" + p + R"(, "classifier_dropout_prob": )" + p + "}";
}
// Global and local layers alternate, and the head reads the mean of a text's tokens.
inline std::string small_modernbert(const char* dropout = "0") {
  const std::string p = dropout;
  return R"({"model_type": "modernbert", "vocab_size": 61, "max_position_embeddings": 40, )"
         R"("hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 5,
             "intermediate_size": 72, "local_attention": 9, "global_attn_every_n_layers": 2, )"
         R"("classifier_pooling": "mean", "pad_token_id": 0,
             "embedding_dropout": )" +
         p + R"(, "attention_dropout": )" + p + R"(, "mlp_dropout": )" + p + R"(, "classifier_dropout": )" +
         p + "}";
}
// Distances beyond 3 share rows of the table, and those beyond 10 the last one. `shares`: positions have the
// matrices of tokens.
inline std::string small_deberta(const char* dropout = "0", bool shares = true) {
  const std::string p = dropout;
  return R"({"model_type": "deberta-v2", "vocab_size": 61, "max_position_embeddings": 40, )"
         R"("hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 5, "intermediate_size": 72,
             "relative_attention": true, "position_buckets": 6, "max_relative_positions": 12, )"
         R"("norm_rel_ebd": "layer_norm", "pos_att_type": "p2c|c2p", "position_biased_input": false,
             "share_att_key": )" +
         std::string(shares ? "true" : "false") + R"(, "hidden_dropout_prob": )" + p +
         R"(, "attention_probs_dropout_prob": )" + p + R"(, "pooler_dropout": )" + p + "}";
}
inline std::vector<std::string> small_encoders(const char* dropout = "0") {
  return {classifier_of(small_bert(dropout)),       classifier_of(small_roberta(dropout)),
          classifier_of(small_distilbert(dropout)), classifier_of(small_electra(dropout)),
          classifier_of(small_albert(dropout)),     classifier_of(small_modernbert(dropout)),
          classifier_of(small_deberta(dropout)),    classifier_of(small_deberta(dropout, false))};
}

// A configuration and the adapters of its matrices.
struct SmallModel {
  std::string config;
  Adapters adapters;
  SmallModel(std::string text, Adapters given = {}) : config(std::move(text)), adapters(std::move(given)) {}
  SmallModel(const char* text) : config(text) {}
};
inline SmallModel with_positions(SmallModel model, int positions) {
  return {with_positions(model.config, positions), model.adapters};
}

// Adapters of all matrices of blocks, or of some only; with or without a scale.
inline Adapters adapters_of_all(double dropout = 0) { return {3, 6, false, dropout, {all_targets}}; }
inline Adapters adapters_of_some() { return {8, 8, false, 0, {"k_proj", "v_proj", "up_proj", "down_proj"}}; }

inline Adapters adapters_of_some_of_encoders() {
  return {4, 8, false, 0, {"query", "value", "output.dense"}};
}
inline Adapters adapters_of_some_of_gpt2() { return {4, 8, false, 0, {"c_attn", "mlp.c_proj"}}; }

}  // namespace stw::testing_tools
