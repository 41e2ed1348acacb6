// Presets: published configurations under short names. Each is a config.json like those that an export
// writes; dropout is 0. Sources: the models' published configuration files (openai-community/gpt2*,
// HuggingFaceTB/SmolLM-*, Qwen/Qwen2.5-*, Qwen/Qwen3-*, meta-llama/Llama-3.*, HuggingFaceTB/SmolLM3-3B,
// bigscience/bloom-*, microsoft/Phi-3-mini-4k-instruct, google/gemma-3-*, google-bert/bert-*-uncased,
// FacebookAI/roberta-base). `bert-1.3b` has as many layers as BERT-large and is twice as wide. `nano` is
// nanoGPT's setting for small machines with a vocabulary of bytes.
#include "src/models/model.h"

namespace stw {

namespace {

struct Preset {
  const char* name;
  const char* config;
};

constexpr Preset presets[] = {
    {"nano",
     R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 256, "n_positions": 256,
"n_embd": 128, "n_layer": 4, "n_head": 4, "activation_function": "gelu_new",
"layer_norm_epsilon": 1e-05, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0,
"initializer_range": 0.02, "tie_word_embeddings": true,
"bos_token_id": null, "eos_token_id": null})"},
    {"gpt2",
     R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
"n_embd": 768, "n_layer": 12, "n_head": 12, "activation_function": "gelu_new",
"layer_norm_epsilon": 1e-05, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0,
"initializer_range": 0.02, "tie_word_embeddings": true})"},
    {"gpt2-medium",
     R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
"n_embd": 1024, "n_layer": 24, "n_head": 16, "activation_function": "gelu_new",
"layer_norm_epsilon": 1e-05, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0,
"initializer_range": 0.02, "tie_word_embeddings": true})"},
    {"gpt2-large",
     R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
"n_embd": 1280, "n_layer": 36, "n_head": 20, "activation_function": "gelu_new",
"layer_norm_epsilon": 1e-05, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0,
"initializer_range": 0.02, "tie_word_embeddings": true})"},
    {"gpt2-xl",
     R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
"n_embd": 1600, "n_layer": 48, "n_head": 25, "activation_function": "gelu_new",
"layer_norm_epsilon": 1e-05, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0,
"initializer_range": 0.02, "tie_word_embeddings": true})"},
    {"smollm-135m", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 49152,
"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
"num_key_value_heads": 3, "max_position_embeddings": 2048, "rms_norm_eps": 1e-05,
"rope_theta": 10000.0, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": true})"},
    {"smollm-360m", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 49152,
"hidden_size": 960, "intermediate_size": 2560, "num_hidden_layers": 32, "num_attention_heads": 15,
"num_key_value_heads": 5, "max_position_embeddings": 2048, "rms_norm_eps": 1e-05,
"rope_theta": 10000.0, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": true})"},
    {"qwen2.5-0.5b", R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 151936,
"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
"num_key_value_heads": 2, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06,
"rope_theta": 1000000.0, "hidden_act": "silu", "initializer_range": 0.02,
"tie_word_embeddings": true})"},
    {"qwen2.5-1.5b", R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 151936,
"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
"num_key_value_heads": 2, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06,
"rope_theta": 1000000.0, "hidden_act": "silu", "initializer_range": 0.02,
"tie_word_embeddings": true})"},
    {"qwen2.5-3b", R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 151936,
"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
"num_key_value_heads": 2, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06,
"rope_theta": 1000000.0, "hidden_act": "silu", "initializer_range": 0.02,
"tie_word_embeddings": true})"},
    {"qwen2.5-7b", R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 152064,
"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
"num_key_value_heads": 4, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06,
"rope_theta": 1000000.0, "hidden_act": "silu", "initializer_range": 0.02,
"tie_word_embeddings": false})"},
    {"qwen3-0.6b", R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 151936,
"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
"num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960, "rms_norm_eps": 1e-06,
"rope_theta": 1000000.0, "hidden_act": "silu", "initializer_range": 0.02, "attention_bias": false,
"tie_word_embeddings": true})"},
    {"qwen3-1.7b", R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 151936,
"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16,
"num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960, "rms_norm_eps": 1e-06,
"rope_theta": 1000000.0, "hidden_act": "silu", "initializer_range": 0.02, "attention_bias": false,
"tie_word_embeddings": true})"},
    {"qwen3-4b", R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 151936,
"hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32,
"num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960, "rms_norm_eps": 1e-06,
"rope_theta": 1000000.0, "hidden_act": "silu", "initializer_range": 0.02, "attention_bias": false,
"tie_word_embeddings": true})"},
    {"qwen3-8b", R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 151936,
"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
"num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960, "rms_norm_eps": 1e-06,
"rope_theta": 1000000.0, "hidden_act": "silu", "initializer_range": 0.02, "attention_bias": false,
"tie_word_embeddings": false})"},
    {"llama-1b", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256,
"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
"num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05,
"rope_theta": 500000.0, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": true,
"rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, )"
                 R"("original_max_position_embeddings": 8192},
"head_dim": 64})"},
    {"llama-3b", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256,
"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24,
"num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05,
"rope_theta": 500000.0, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": true,
"rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, )"
                 R"("original_max_position_embeddings": 8192},
"head_dim": 128})"},
    {"llama-8b", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256,
"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
"num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05,
"rope_theta": 500000.0, "hidden_act": "silu", "initializer_range": 0.02,
"tie_word_embeddings": false,
"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, )"
                 R"("original_max_position_embeddings": 8192}})"},
    {"smollm3-3b", R"({"architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "vocab_size": 128256,
"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
"num_key_value_heads": 4, "max_position_embeddings": 65536, "rms_norm_eps": 1e-06, "rope_theta": 5000000.0,
"hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": true, "no_rope_layer_interval": 4})"},
    {"phi-3-mini", R"({"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "vocab_size": 32064,
"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 32,
"num_key_value_heads": 32, "max_position_embeddings": 4096, "original_max_position_embeddings": 4096,
"rms_norm_eps": 1e-05, "rope_theta": 10000.0, "hidden_act": "silu", "initializer_range": 0.02,
"sliding_window": 2047, "tie_word_embeddings": false})"},
    {"bloom-560m", R"({"architectures": ["BloomForCausalLM"], "model_type": "bloom", "vocab_size": 250880, )"
                   R"("seq_length": 2048,
"hidden_size": 1024, "n_layer": 24, "n_head": 16, "layer_norm_epsilon": 1e-05, )"
                   R"("apply_residual_connection_post_layernorm": false,
"hidden_dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.02,
"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3})"},
    {"bloom-1b7", R"({"architectures": ["BloomForCausalLM"], "model_type": "bloom", "vocab_size": 250880, )"
                  R"("seq_length": 2048,
"hidden_size": 2048, "n_layer": 24, "n_head": 16, "layer_norm_epsilon": 1e-05, )"
                  R"("apply_residual_connection_post_layernorm": false,
"hidden_dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.02,
"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3})"},
    {"gemma3-270m",
     R"({"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "vocab_size": 262144,
"hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 4,
"num_key_value_heads": 1, "head_dim": 256, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06,
"rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "sliding_window": 512, "sliding_window_pattern": 6,
"query_pre_attn_scalar": 256, "hidden_activation": "gelu_pytorch_tanh", "initializer_range": 0.02})"},
    {"gemma3-1b",
     R"({"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "vocab_size": 262144,
"hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26, "num_attention_heads": 4,
"num_key_value_heads": 1, "head_dim": 256, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06,
"rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "sliding_window": 512, "sliding_window_pattern": 6,
"query_pre_attn_scalar": 256, "hidden_activation": "gelu_pytorch_tanh", "initializer_range": 0.02})"},
    {"gemma3-4b",
     R"({"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "vocab_size": 262208,
"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "num_attention_heads": 8,
"num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-06,
"rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "rope_scaling": {"factor": 8.0, )"
     R"("rope_type": "linear"}, "sliding_window": 1024,
"sliding_window_pattern": 6, "query_pre_attn_scalar": 256, "hidden_activation": "gelu_pytorch_tanh", )"
     R"("initializer_range": 0.02})"},
    {"gemma3-12b",
     R"({"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "vocab_size": 262208,
"hidden_size": 3840, "intermediate_size": 15360, "num_hidden_layers": 48, "num_attention_heads": 16,
"num_key_value_heads": 8, "head_dim": 256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-06,
"rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "rope_scaling": {"factor": 8.0, )"
     R"("rope_type": "linear"}, "sliding_window": 1024,
"sliding_window_pattern": 6, "query_pre_attn_scalar": 256, "hidden_activation": "gelu_pytorch_tanh", )"
     R"("initializer_range": 0.02})"},
    {"bert-base", R"({"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 30522,
"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
"max_position_embeddings": 512, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu", )"
                  R"("pad_token_id": 0,
"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.02})"},
    {"bert-large", R"({"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 30522,
"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
"max_position_embeddings": 512, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu", )"
                   R"("pad_token_id": 0,
"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.02})"},
    {"bert-1.3b", R"({"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 30522,
"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24, "num_attention_heads": 32,
"max_position_embeddings": 512, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu", )"
                  R"("pad_token_id": 0,
"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.02})"},
    {"modernbert-base",
     R"({"architectures": ["ModernBertModel"], "model_type": "modernbert", "vocab_size": 50368,
"hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22, "num_attention_heads": 12, )"
     R"("max_position_embeddings": 8192,
"global_attn_every_n_layers": 3, "local_attention": 128, "global_rope_theta": 160000.0, )"
     R"("local_rope_theta": 10000.0, "norm_eps": 1e-05,
"norm_bias": false, "attention_bias": false, "mlp_bias": false, "hidden_activation": "gelu", )"
     R"("classifier_activation": "gelu", "classifier_bias": false,
"classifier_pooling": "mean", "attention_dropout": 0.0, "embedding_dropout": 0.0, "mlp_dropout": 0.0, )"
     R"("classifier_dropout": 0.0,
"bos_token_id": 50281, "eos_token_id": 50282, "cls_token_id": 50281, "sep_token_id": 50282, )"
     R"("pad_token_id": 50283, "initializer_range": 0.02})"},
    {"roberta-base", R"({"architectures": ["RobertaModel"], "model_type": "roberta", "vocab_size": 50265,
"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-05, "hidden_act": "gelu", )"
                     R"("bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2,
"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.02})"},
    {"deberta-v3-small",
     R"({"architectures": ["DebertaV2Model"], "model_type": "deberta-v2", "vocab_size": 128100,
"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 6, "num_attention_heads": 12,
"max_position_embeddings": 512, "type_vocab_size": 0, "layer_norm_eps": 1e-07, "hidden_act": "gelu", )"
     R"("pad_token_id": 0, "relative_attention": true, "max_relative_positions": -1, "position_buckets": 256,
"norm_rel_ebd": "layer_norm", "share_att_key": true, "pos_att_type": "p2c|c2p", )"
     R"("position_biased_input": false,
"pooler_hidden_size": 768, "pooler_hidden_act": "gelu", "pooler_dropout": 0.0,
"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.02})"},
    {"deberta-v3-base",
     R"({"architectures": ["DebertaV2Model"], "model_type": "deberta-v2", "vocab_size": 128100,
"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
"max_position_embeddings": 512, "type_vocab_size": 0, "layer_norm_eps": 1e-07, "hidden_act": "gelu", )"
     R"("pad_token_id": 0, "relative_attention": true, "max_relative_positions": -1, "position_buckets": 256,
"norm_rel_ebd": "layer_norm", "share_att_key": true, "pos_att_type": "p2c|c2p", )"
     R"("position_biased_input": false,
"pooler_hidden_size": 768, "pooler_hidden_act": "gelu", "pooler_dropout": 0.0,
"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.02})"},
    {"deberta-v3-large",
     R"({"architectures": ["DebertaV2Model"], "model_type": "deberta-v2", "vocab_size": 128100,
"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
"max_position_embeddings": 512, "type_vocab_size": 0, "layer_norm_eps": 1e-07, "hidden_act": "gelu", )"
     R"("pad_token_id": 0, "relative_attention": true, "max_relative_positions": -1, "position_buckets": 256,
"norm_rel_ebd": "layer_norm", "share_att_key": true, "pos_att_type": "p2c|c2p", )"
     R"("position_biased_input": false,
"pooler_hidden_size": 1024, "pooler_hidden_act": "gelu", "pooler_dropout": 0.0,
"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.02})"},
};

}  // namespace

const char* find_preset(std::string_view name) {
  for (const Preset& p : presets)
    if (name == p.name) return p.config;
  return nullptr;
}

const char* preset_name(size_t index) { return index < std::size(presets) ? presets[index].name : nullptr; }

}  // namespace stw
