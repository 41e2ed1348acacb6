// Presets: published shapes under short names. Each is the config.json that an export writes; dropout is 0.
// Sources: the models' published configuration files (openai-community/gpt2*, HuggingFaceTB/SmolLM-*, Qwen/Qwen2.5-*,
// Qwen/Qwen3-*, meta-llama/Llama-3.*); `nano` is nanoGPT's setting for small machines with a vocabulary of bytes.
#include "src/models/model.h"

namespace stw {

namespace {

struct Preset { const char* name; const char* config; };

constexpr Preset presets[] = {
    {"nano", R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 256, "n_positions": 256,
"n_embd": 128, "n_layer": 4, "n_head": 4, "activation_function": "gelu_new",
"layer_norm_epsilon": 1e-05, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0,
"initializer_range": 0.02, "tie_word_embeddings": true,
"bos_token_id": null, "eos_token_id": null})"},
    {"gpt2", R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
"n_embd": 768, "n_layer": 12, "n_head": 12, "activation_function": "gelu_new",
"layer_norm_epsilon": 1e-05, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0,
"initializer_range": 0.02, "tie_word_embeddings": true})"},
    {"gpt2-medium", R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
"n_embd": 1024, "n_layer": 24, "n_head": 16, "activation_function": "gelu_new",
"layer_norm_epsilon": 1e-05, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0,
"initializer_range": 0.02, "tie_word_embeddings": true})"},
    {"gpt2-large", R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
"n_embd": 1280, "n_layer": 36, "n_head": 20, "activation_function": "gelu_new",
"layer_norm_epsilon": 1e-05, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0,
"initializer_range": 0.02, "tie_word_embeddings": true})"},
    {"gpt2-xl", R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
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
"rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
"head_dim": 64})"},
    {"llama-3b", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256,
"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24,
"num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05,
"rope_theta": 500000.0, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": true,
"rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
"head_dim": 128})"},
    {"llama-8b", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256,
"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
"num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05,
"rope_theta": 500000.0, "hidden_act": "silu", "initializer_range": 0.02,
"tie_word_embeddings": false,
"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})"},
};

}  // namespace

const char* find_preset(std::string_view name) {
  for (const Preset& p : presets)
    if (name == p.name) return p.config;
  return nullptr;
}

const char* preset_name(size_t index) { return index < std::size(presets) ? presets[index].name : nullptr; }

}  // namespace stw
