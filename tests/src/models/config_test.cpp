// Configs of models: valid ones in every spelling, invalid ones refused by name; and the presets.
#include "src/weights/model.h"

#include "planner/plan/plan_file.h"
#include "src/models/decoder/decoder.h"
#include "tests/src/small_models.h"
#include "tests/src/temporary_directory.h"

namespace stw::config_test {
namespace {

using namespace testing_tools;

const char* gpt2_fields =
    R"("model_type": "gpt2", "vocab_size": 61, "n_positions": 40, "n_embd": 40, "n_layer": 2, "n_head": 4)";
const char* deberta_fields =
    R"("model_type": "deberta-v2", "vocab_size": 61, "hidden_size": 40, "num_hidden_layers": 2,
       "num_attention_heads": 5, "intermediate_size": 72, "max_position_embeddings": 40,
       "relative_attention": true, "max_relative_positions": 12, "position_buckets": 6,
       "pos_att_type": "c2p|p2c", "position_biased_input": false)";
const char* llama_fields =
    R"("model_type": "llama", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 48,
    "intermediate_size": 88, "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2)";

Json with(const char* fields, const char* key, Json value) {
  auto json = parse_json(std::string("{") + fields + "}");
  EXPECT_TRUE(json);
  json->set(key, std::move(value));
  return *json;
}

const DecoderConfig& decoder_of(const ModelConfig& config) {
  return std::any_cast<const DecoderConfig&>(config.family);
}

// A config has a row of the table of families from its beginning, so that none can be taken for another's.
static_assert(!std::is_default_constructible_v<ModelConfig>);
TEST(ParseModel, AConfigHasTheRowOfItsFamily) {
  for (const std::string& text : small_models("0")) {
    const auto config = parse_model(text, "config");
    ASSERT_TRUE(config) << config.error().message;
    const Architecture& row = architecture_of(*config);
    EXPECT_EQ(&row, find_architecture(row.model_type));
    EXPECT_NE(text.find(std::string("\"") + row.model_type), text.npos) << text;
  }
  EXPECT_EQ(find_architecture("mamba"), nullptr);
  EXPECT_EQ(find_architecture(""), nullptr);
}

TEST(Config, BadOnesAreRefusedByName) {
  const struct {
    Json json;
    Code code;
    const char* part;
  } cases[] = {
      {with(gpt2_fields, "model_type", "t5"), Code::unsupported,
       "expected model_type albert, bert, bloom, camembert, deberta-v2, distilbert, electra, gemma3, "
       "gemma3_text, gpt2, "
       "llama, "
       "ministral, mistral, modernbert, phi3, qwen2, qwen3, roberta, smollm3, xlm-roberta, found \"t5\""},
      {with(gpt2_fields, "model_type", nullptr), Code::corrupt, "model_type"},
      {with(gpt2_fields, "n_embd", "wide"), Code::corrupt, "n_embd"},
      {with(gpt2_fields, "n_embd", 40.5), Code::corrupt, "n_embd"},
      {with(gpt2_fields, "n_embd", 42), Code::unsupported_field, "n_embd 42 is not a multiple of n_head 4"},
      {with(gpt2_fields, "n_embd", 0), Code::unsupported_field, "n_embd"},
      {with(gpt2_fields, "n_embd", -40), Code::unsupported_field, "n_embd"},
      {with(gpt2_fields, "n_embd", INT64_MAX), Code::unsupported_field, "n_embd"},
      {with(gpt2_fields, "n_embd", int64_t{1} << 33), Code::unsupported_field, "width"},
      {with(gpt2_fields, "num_attention_heads", 2), Code::unsupported_field,
       "n_head is 4 and num_attention_heads 2"},
      {with(gpt2_fields, "n_head", 0), Code::unsupported_field, "n_head"},
      {with(gpt2_fields, "n_head", 40), Code::unsupported_field, "head width"},
      {with(gpt2_fields, "n_layer", 0), Code::unsupported_field, "layers"},
      {with(gpt2_fields, "n_layer", 1025), Code::unsupported_field,
       "expected at most 1024 layers, found 1025"},
      {with(gpt2_fields, "n_positions", -1), Code::unsupported_field, "positions"},
      {with(gpt2_fields, "vocab_size", 0), Code::unsupported_field, "vocabulary"},
      {with(gpt2_fields, "vocab_size", int64_t{1} << 40), Code::unsupported_field, "vocabulary"},
      {with(gpt2_fields, "n_inner", 0), Code::unsupported_field, "intermediate"},
      {with(gpt2_fields, "attn_pdrop", 1.0), Code::unsupported_field, "dropout"},
      {with(gpt2_fields, "resid_pdrop", -0.1), Code::unsupported_field, "dropout"},
      {with(gpt2_fields, "layer_norm_epsilon", 1e39), Code::unsupported_field, "epsilon"},
      {with(gpt2_fields, "initializer_range", 1e300), Code::unsupported_field, "initializer_range"},
      {with(gpt2_fields, "activation_function", "relu"), Code::unsupported_field,
       "activation_function \"relu\""},
      {with(gpt2_fields, "tie_word_embeddings", 1), Code::corrupt, "tie_word_embeddings"},
      {with(gpt2_fields, "add_cross_attention", true), Code::unsupported_field, "add_cross_attention"},
      {with(gpt2_fields, "scale_attn_by_inverse_layer_idx", true), Code::unsupported_field,
       "scale_attn_by_inverse_layer_idx"},
      {with(gpt2_fields, "is_causal", false), Code::unsupported_field, "is_causal false"},
      {with(llama_fields, "is_causal", false), Code::unsupported_field, "is_causal false"},
      {with(llama_fields, "is_causal", nullptr), Code::unsupported_field, "is_causal null"},
      {with(llama_fields, "vocab_size", nullptr), Code::corrupt, "vocab_size"},
      {with(llama_fields, "hidden_size", nullptr), Code::corrupt, "hidden_size"},
      {with(llama_fields, "intermediate_size", nullptr), Code::corrupt, "intermediate_size"},
      {with(llama_fields, "num_hidden_layers", nullptr), Code::corrupt, "num_hidden_layers"},
      {with(llama_fields, "num_attention_heads", nullptr), Code::corrupt, "num_attention_heads"},
      {with(llama_fields, "max_position_embeddings", nullptr), Code::corrupt, "max_position_embeddings"},
      {with(llama_fields, "num_key_value_heads", 4), Code::unsupported_field,
       "6 heads cannot share 4 key-value heads"},
      {with(llama_fields, "num_key_value_heads", 0), Code::unsupported_field, "key-value"},
      {with(llama_fields, "num_key_value_heads", 12), Code::unsupported_field, "key-value"},
      {with(llama_fields, "num_attention_heads", 0), Code::unsupported_field, "heads"},
      {with(llama_fields, "num_attention_heads", INT64_MAX), Code::unsupported_field, "heads"},
      {with(llama_fields, "head_dim", 7), Code::unsupported_field, "head width"},
      {with(llama_fields, "head_dim", 512), Code::unsupported_field, "head width"},
      {with(llama_fields, "head_dim", -8), Code::unsupported_field, "head_dim"},
      {with(llama_fields, "hidden_act", "gelu"), Code::unsupported_field, "hidden_act \"gelu\""},
      {with(llama_fields, "rope_scaling", Json::object().set("rope_type", "yarn")), Code::unsupported_field,
       "\"yarn\""},
      {with(llama_fields, "rope_scaling", Json::object().set("rope_type", "linear")), Code::corrupt,
       "factor"},
      {with(llama_fields, "rope_scaling", Json::object().set("rope_type", "linear").set("factor", 0.5)),
       Code::unsupported_field, "factor"},
      {with(llama_fields, "rope_scaling", Json::object().set("type", "llama3").set("factor", 8)),
       Code::corrupt, "low_freq_factor"},
      {with(llama_fields, "rope_scaling", "linear"), Code::corrupt, "\"rope_scaling\": expected an object"},
      {with(llama_fields, "rope_parameters", Json(Json::Array{})), Code::corrupt,
       "\"rope_parameters\": expected an object"},
      {with(llama_fields, "partial_rotary_factor", 0.5), Code::unsupported_field, "partial_rotary_factor"},
      {with(llama_fields, "rope_parameters", Json::object().set("partial_rotary_factor", 0.5)),
       Code::unsupported_field, "partial_rotary_factor"},
      {with(llama_fields, "rms_norm_eps", "small"), Code::corrupt, "rms_norm_eps"},
      {with(deberta_fields, "pos_att_type", "c2p|p2p"), Code::unsupported_field, "pos_att_type \"p2p\""},
      {with(deberta_fields, "pos_att_type", ""), Code::unsupported_field, "needs a pos_att_type"},
      {with(deberta_fields, "position_buckets", 1), Code::unsupported_field,
       "position_buckets 1: expected at least 2 buckets, or none"},
      {with(deberta_fields, "max_relative_positions", 4), Code::unsupported_field,
       "position_buckets 6 contradicts max_relative_positions 4"},
      {with(deberta_fields, "position_buckets", 20), Code::unsupported_field,
       "position_buckets 20 are too many"},
      {with(deberta_fields, "position_buckets", 70000), Code::unsupported_field,
       "a table of 70000 positions"},
      {with(R"("model_type": "deberta-v2", "position_biased_input": true)", "max_position_embeddings", 0),
       Code::unsupported_field, "position_biased_input needs positions"},
      {with(R"("model_type": "deberta-v2", "relative_attention": true, "pos_att_type": "c2p",
               "position_biased_input": false, "position_buckets": 8)",
            "max_position_embeddings", 0),
       Code::unsupported_field, "max_position_embeddings 0: expected at least 1"},
      {with(R"("model_type": "albert", "hidden_size": 64, "num_attention_heads": 2)", "embedding_size", 0),
       Code::unsupported_field, "embedding_size is 0"},
      {with(R"("model_type": "electra")", "embedding_size", 0), Code::unsupported_field,
       "embedding_size is 0"},
      {with(deberta_fields, "conv_kernel_size", 3), Code::unsupported_field, "convolution"},
      {with(deberta_fields, "attention_head_size", 16), Code::unsupported_field, "attention_head_size 16"},
      {with(deberta_fields, "pooler_hidden_size", 7), Code::unsupported_field, "pooler_hidden_size 7"},
      {with(deberta_fields, "pooler_hidden_act", "swish"), Code::unsupported_field, "pooler_hidden_act"},
      {with(deberta_fields, "pooler_dropout", 1.5), Code::unsupported_field, "dropout"},
  };
  TemporaryDirectory folder;
  for (const auto& c : cases) {
    const std::string text = to_string(c.json, 0), path = folder / "config.json";
    put_file(path, text);
    ModelSource source;
    source.source = path;
    auto model = Model::open(source);
    ASSERT_FALSE(model) << text;
    EXPECT_EQ(model.error().code, c.code) << model.error().message;
    EXPECT_TRUE(model.error().message.starts_with(path + ": ")) << model.error().message;
    EXPECT_NE(model.error().message.find(c.part), std::string::npos)
        << model.error().message << " has no " << c.part;
    EXPECT_EQ(model.error().message.find('\n'), std::string::npos);
  }
}

// Defaults as in transformers (configuration_llama.py and so on): Llama treats null as an absent key, Qwen2
// and Qwen3 default to 32, Mistral to 8, which does not divide 6 heads.
TEST(Config, DefaultsOfKeyValueHeads) {
  const auto open = [](const char* type, int heads, bool is_null) {
    ModelSource source;
    source.config_json = std::string(R"({"model_type": ")") + type +
                         R"(", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 384,
        "intermediate_size": 88, "num_hidden_layers": 1, "head_dim": 8, "num_attention_heads": )" +
                         std::to_string(heads) + (is_null ? R"(, "num_key_value_heads": null})" : "}");
    return Model::open(source);
  };
  const struct {
    const char* type;
    int heads;
    bool is_null;
    int expected;
  } cases[] = {{"llama", 64, false, 64},    {"llama", 64, true, 64},   {"llama", 6, false, 6},
               {"qwen2", 64, false, 32},    {"qwen2", 64, true, 64},   {"qwen2", 32, false, 32},
               {"qwen2", 6, true, 6},       {"qwen2", 6, false, 6},    {"qwen2", 48, false, 48},
               {"qwen3", 64, false, 32},    {"qwen3", 64, true, 64},   {"qwen3", 6, false, 6},
               {"ministral", 64, false, 8}, {"mistral", 64, false, 8}, {"mistral", 64, true, 64},
               {"mistral", 6, false, 6}};
  for (const auto& [type, heads, is_null, expected] : cases) {
    const auto model = open(type, heads, is_null);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ((*model)->config().kv_heads, expected) << type << ' ' << heads << ' ' << is_null;
  }
}

// Source: configuration_qwen3.py. Queries and keys always have norms; biases only where the config asks for
// them.
TEST(Config, HeadsOfQwen3AreNormedAndHave128) {
  const auto open = [](const std::string& more) {
    ModelSource source;
    source.config_json =
        R"({"model_type": "qwen3", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 64, )"
        R"("intermediate_size": 88,
        "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2)" +
        more + "}";
    return Model::open(source);
  };
  const auto plain = open(""), biased = open(R"(, "attention_bias": true, "head_dim": 32)");
  ASSERT_TRUE(plain && biased);
  EXPECT_EQ((*plain)->config().head_dim, 128);
  EXPECT_EQ((*biased)->config().head_dim, 32);
  const auto parameters = [](const auto& model) {
    size_t norms = 0, biases = 0;
    for (const Tensor& t : (*model)->graph().tensors) {
      if (t.role != Role::parameter) continue;
      norms += t.name.ends_with(".self_attn.q_norm.weight") || t.name.ends_with(".self_attn.k_norm.weight");
      biases += t.name.ends_with(".bias");
    }
    return std::pair{norms, biases};
  };
  EXPECT_EQ(parameters(plain), std::pair(size_t{2}, size_t{0}));
  EXPECT_EQ(parameters(biased), std::pair(size_t{2}, size_t{4}));
}

// For each layer, the number of keys, up to its own, that a token attends to.
std::vector<int64_t> windows_of(const std::string& type, const std::string& more) {
  ModelSource source;
  source.config_json = R"({"model_type": ")" + type +
                       R"(", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 64,
      "intermediate_size": 88, "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 2)" +
                       more + "}";
  const auto model = Model::open(source);
  if (!model) return {model.error().code == Code::unsupported_field ? -1 : -2};
  std::vector<int64_t> windows;
  for (const Op& op : (*model)->graph().ops)
    if (op.kind == OpKind::attention) windows.push_back(op.attributes.window);
  return windows;
}

// Source: transformers, configuration_qwen2.py, configuration_qwen3.py, configuration_smollm3.py,
// configuration_phi3.py.
TEST(Config, LayersHaveWindows) {
  using Windows = std::vector<int64_t>;
  for (const char* type : {"qwen2", "qwen3"}) {
    EXPECT_EQ(windows_of(type, R"(, "sliding_window": 9, "max_window_layers": 2)"), Windows(5, 0));
    EXPECT_EQ(
        windows_of(type, R"(, "use_sliding_window": true, "sliding_window": 9, "max_window_layers": 2)"),
        (Windows{0, 0, 9, 9, 9}));
    EXPECT_EQ(windows_of(type, R"(, "use_sliding_window": true, "max_window_layers": 0)"), Windows(5, 4096));
    EXPECT_EQ(
        windows_of(type, R"(, "use_sliding_window": true, "sliding_window": null, "max_window_layers": 0)"),
        Windows(5, 0));
    EXPECT_EQ(
        windows_of(type,
                   R"(, "use_sliding_window": true, "sliding_window": 7, "layer_types": ["full_attention", )"
                   R"("sliding_attention",
        "full_attention", "full_attention", "sliding_attention"])"),
        (Windows{0, 7, 0, 0, 7}));
    EXPECT_EQ(
        windows_of(type,
                   R"(, "use_sliding_window": true, "sliding_window": 7, "layer_types": ["full_attention"])"),
        Windows{-1});
    EXPECT_EQ(
        windows_of(type,
                   R"(, "use_sliding_window": true, "sliding_window": 7, "layer_types": ["full_attention", )"
                   R"("linear_attention",
        "full_attention", "full_attention", "full_attention"])"),
        Windows{-1});
    const std::string full =
        R"(, "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention", )"
        R"("full_attention"])";
    EXPECT_EQ(windows_of(type, R"(, "sliding_window": null)" + full), Windows(5, 0));
  }
  EXPECT_EQ(windows_of("smollm3", R"(, "sliding_window": 9)"), Windows(5, 0));
  EXPECT_EQ(windows_of("smollm3", R"(, "use_sliding_window": true, "sliding_window": 9)"),
            (Windows{0, 0, 0, 9, 0}));
  const std::string some =
      R"(, "sliding_window": 9, "layer_types": ["sliding_attention", "full_attention", "full_attention", )"
      R"("full_attention", "full_attention"])";
  EXPECT_EQ(windows_of("smollm3", some), (Windows{9, 0, 0, 0, 0}));
  EXPECT_EQ(windows_of("smollm3", R"(, "use_sliding_window": false)" + some), (Windows{9, 0, 0, 0, 0}));
  // The list names a layer with a window, but no window is set: transformers cannot make a mask.
  const std::string last =
      R"(, "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention", )"
      R"("sliding_attention"])";
  for (const char* type : {"qwen2", "qwen3", "smollm3", "mistral"})
    EXPECT_EQ(windows_of(type, R"(, "use_sliding_window": true, "sliding_window": null)" + last), Windows{-1})
        << type;
  for (const char* type : {"qwen2", "qwen3"})
    EXPECT_EQ(windows_of(type, R"(, "use_sliding_window": false, "sliding_window": 9)" + last), Windows{-1})
        << type;
  for (const char* type : {"mistral", "ministral"}) {
    EXPECT_EQ(windows_of(type, R"(, "sliding_window": 9)"), Windows(5, 9));
    EXPECT_EQ(windows_of(type, R"(, "sliding_window": 9)" + last), (Windows{0, 0, 0, 0, 9}));
    EXPECT_EQ(windows_of(type, R"(, "layer_types": null)"), Windows(5, 4096));
  }
  EXPECT_EQ(windows_of("gemma3_text", ""), Windows(5, 4096));
  EXPECT_EQ(windows_of("gemma3_text", R"(, "sliding_window": 9, "sliding_window_pattern": 2)"),
            (Windows{9, 0, 9, 0, 9}));
  EXPECT_EQ(windows_of("gemma3_text", R"(, "sliding_window": null)"), Windows{-1});
  EXPECT_EQ(windows_of("gemma3_text", R"(, "sliding_window_pattern": 0)"), Windows{-1});
  EXPECT_EQ(windows_of("phi3", ""), Windows(5, 0));
  EXPECT_EQ(windows_of("phi3", R"(, "sliding_window": 9)"), Windows(5, 9));
}

// Source: configuration_smollm3.py: every fourth layer has no positions, or those that a list gives as 0.
TEST(Config, LayersOfSmolLM3WithoutPositions) {
  const auto rotary_of = [](const std::string& more) {
    ModelSource source;
    source.config_json =
        R"({"model_type": "smollm3", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 64, )"
        R"("intermediate_size": 88,
        "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 2)" +
        more + "}";
    const auto model = Model::open(source);
    std::string layers;
    for (const Op& op : model ? (*model)->graph().ops : std::vector<Op>{}) {
      if (op.kind == OpKind::rope) layers += 'r';
      if (op.kind == OpKind::attention) layers += 'a';
    }
    return layers;
  };
  EXPECT_EQ(rotary_of(""), "rararaara");
  EXPECT_EQ(rotary_of(R"(, "no_rope_layer_interval": 2)"), "raaraara");
  EXPECT_EQ(rotary_of(R"(, "no_rope_layers": [0, 0, 1, 1, 0])"), "aararaa");
  // The model has fewer layers than the list: it was cut.
  EXPECT_EQ(rotary_of(R"(, "no_rope_layers": [0, 0, 1, 1, 0, 1, 1])"), "aararaa");
  EXPECT_EQ(rotary_of(R"(, "no_rope_layers": [0, 0, 1])"), "");
  EXPECT_EQ(rotary_of(R"(, "no_rope_layers": [0, 0, 1, 2, 0])"), "");
}

// LongRoPE, also of part of a head. Expected: transformers' _compute_longrope_parameters for the same config.
TEST(Config, Phi3ScalesAnglesOneByOne) {
  const std::string factors = R"("short_factor": [1, 1.5, 2], "long_factor": [4, 5.0, 6.5])";
  const auto open = [](const std::string& more) {
    return parse_model(
        R"({"model_type": "phi3", "vocab_size": 61, "max_position_embeddings": 256, "hidden_size": 64, )"
        R"("intermediate_size": 88,
        "num_hidden_layers": 1, "num_attention_heads": 8, "partial_rotary_factor": 0.75, )"
        R"("original_max_position_embeddings": 64)" +
            more + "}",
        "test");
  };
  const auto model = open(R"(, "rope_scaling": {"type": "longrope", )" + factors + "}");
  ASSERT_TRUE(model) << model.error().message;
  const RotaryConfig& r = decoder_of(*model).rotary[0];
  EXPECT_EQ(r.rotary_dim, 6);
  EXPECT_NEAR(r.table_scale, std::sqrt(1 + std::log(4.0) / std::log(64.0)), 1e-12);
  const auto check = [&](int64_t sequence, const std::vector<double>& scaled_by) {
    const std::vector<float> f = rotary_frequencies(r, sequence);
    ASSERT_EQ(f.size(), 3u);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(f[i], 1 / (scaled_by[i] * std::pow(10000.0, static_cast<double>(i) / 3)), 1e-6 * f[i]) << i;
  };
  check(64, {1, 1.5, 2});
  check(65, {4, 5, 6.5});
  // The outer config's count takes precedence. Without it, Phi's own count of 4096 applies, and not the count
  // in the rope parameters.
  const auto original_of = [&](const std::string& outer, const std::string& inner) {
    const auto found = parse_model(
        R"({"model_type": "phi3", "vocab_size": 61, "max_position_embeddings": 256, "hidden_size": 64, )"
        R"("intermediate_size": 88,
        "num_hidden_layers": 1, "num_attention_heads": 8, "partial_rotary_factor": 0.75)" +
            outer + R"(, "rope_scaling": {"type": "longrope", )" + factors + inner + "}}",
        "test");
    return found ? decoder_of(*found).rotary[0].original_positions : -1;
  };
  EXPECT_EQ(original_of(R"(, "original_max_position_embeddings": 24)",
                        R"(, "original_max_position_embeddings": 64)"),
            24);
  EXPECT_EQ(original_of("", R"(, "original_max_position_embeddings": 24)"), 4096);
  EXPECT_EQ(original_of("", ""), 4096);
  EXPECT_EQ(open(R"(, "rope_scaling": {"type": "longrope", "attention_factor": 1e300, )" + factors + "}")
                .error()
                .code,
            Code::unsupported_field);
  EXPECT_EQ(open(R"(, "rope_scaling": {"type": "longrope", "short_factor": [1, 2, 3], )"
                 R"("long_factor": [1e-300, 1, 1]})")
                .error()
                .code,
            Code::unsupported_field);
  EXPECT_EQ(open(R"(, "rope_theta": 1e308)").error().code, Code::unsupported_field);
  EXPECT_EQ(
      open(R"(, "rope_scaling": {"type": "longrope", "short_factor": [1, 2], "long_factor": [1, 2, 3]})")
          .error()
          .code,
      Code::unsupported_field);
  EXPECT_EQ(open(R"(, "rope_scaling": {"type": "longrope", "short_factor": [1, 2, 3]})").error().code,
            Code::corrupt);
  EXPECT_EQ(open(R"(, "rope_scaling": {"type": "yarn", "factor": 2})").error().code, Code::unsupported_field);
}

// Source: configuration_gemma3.py.
TEST(Config, DefaultsAndRefusalsOfGemma) {
  const auto open = [](const std::string& more) {
    return parse_model(R"({"model_type": "gemma3_text", "vocab_size": 61, "max_position_embeddings": 40, )"
                       R"("hidden_size": 64, "intermediate_size": 88,
        "num_hidden_layers": 6, "num_attention_heads": 8)" +
                           more + "}",
                       "test");
  };
  const auto model = open("");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->head_dim, 256);
  EXPECT_EQ(model->kv_heads, 4);
  EXPECT_TRUE(model->tied);
  const DecoderConfig& own = decoder_of(*model);
  EXPECT_EQ(own.embedding_scale, 8);
  EXPECT_EQ(model->attention_scale, 1.0f / 16);
  ASSERT_EQ(own.rotary.size(), 2u);
  EXPECT_EQ(own.rotary[0].theta, 1000000);
  EXPECT_EQ(own.rotary[1].theta, 10000);
  for (size_t layer = 0; layer < 6; ++layer) EXPECT_EQ(own.layers[layer].rotary, layer == 5 ? 0 : 1);
  const auto scaled =
      open(R"(, "rope_theta": 7.0, "rope_local_base_freq": 9.0, "rope_scaling": {"rope_type": "linear", )"
           R"("factor": 8.0})");
  ASSERT_TRUE(scaled);
  EXPECT_EQ(decoder_of(*scaled).rotary[0].theta, 7);
  EXPECT_EQ(decoder_of(*scaled).rotary[0].factor, 8);
  EXPECT_EQ(decoder_of(*scaled).rotary[1].theta, 9);
  EXPECT_EQ(decoder_of(*scaled).rotary[1].scaling, RotaryScaling::none);
  // With both objects, rope_scaling replaces the keys of full layers and changes nothing else.
  const auto both = open(
      R"(, "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5.0}, )"
      R"("sliding_attention": {"rope_theta": 3.0}},
      "rope_scaling": {"factor": 8.0})");
  ASSERT_TRUE(both);
  EXPECT_EQ(decoder_of(*both).rotary[0].theta, 5);
  EXPECT_EQ(decoder_of(*both).rotary[0].factor, 8);
  EXPECT_EQ(decoder_of(*both).rotary[1].theta, 3);
  // The outer config's count of original positions is ignored with objects for several kinds of layers.
  const auto llama3 = open(
      R"(, "original_max_position_embeddings": 8, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, )"
      R"("low_freq_factor": 1.0, "high_freq_factor": 4.0})");
  ASSERT_TRUE(llama3);
  EXPECT_EQ(decoder_of(*llama3).rotary[0].original_positions, 40);
  for (const char* refused : {R"(, "rope_scaling": {"type": "linear", "factor": 8.0})",
                              R"(, "final_logit_softcapping": 30.0)", R"(, "attn_logit_softcapping": 50.0)",
                              R"(, "use_bidirectional_attention": true)", R"(, "hidden_activation": "relu")",
                              R"(, "query_pre_attn_scalar": 0)", R"(, "query_pre_attn_scalar": 1e-300)"}) {
    const auto found = open(refused);
    ASSERT_FALSE(found) << refused;
    EXPECT_EQ(found.error().code, Code::unsupported_field) << refused;
  }
}

// Samples may be longer than the window.
TEST(Config, MistralHasAWindowInEveryLayer) {
  const auto open = [](const char* window) {
    ModelSource source;
    source.config_json =
        std::string(R"({"model_type": "mistral", "vocab_size": 61, "max_position_embeddings": 32768, )"
                    R"("hidden_size": 48,
        "intermediate_size": 88, "num_hidden_layers": 1, "num_attention_heads": 6)") +
        window + "}";
    return Model::open(source);
  };
  const auto window_of = [&](const char* window) {
    const auto model = open(window);
    if (!model || (*model)->config().positions != 32768) return int64_t{-1};
    return decoder_of((*model)->config()).layers[0].window;
  };
  EXPECT_EQ(window_of(""), 4096);  // transformers' default
  EXPECT_EQ(window_of(R"(, "sliding_window": null)"), 0);
  EXPECT_EQ(window_of(R"(, "sliding_window": 1000)"), 1000);
  EXPECT_EQ(open(R"(, "sliding_window": 0)").error().code, Code::unsupported_field);
  EXPECT_EQ(open(R"(, "sliding_window": "all")").error().code, Code::corrupt);
}

TEST(Config, ThetaIsInRopeParametersOrNextToThem) {
  const auto theta_of = [](const Json& json) {
    ModelSource source;
    source.config_json = to_string(json, 0);
    const auto model = Model::open(source);
    return model ? decoder_of((*model)->config()).rotary[0].theta : -1;
  };
  const Json without_theta = Json::object().set("rope_type", "default"),
             with_theta = Json::object().set("rope_type", "default").set("rope_theta", 7.0);
  Json both = with(llama_fields, "rope_theta", 500000.0);
  EXPECT_EQ(theta_of(both), 500000);
  EXPECT_EQ(theta_of(both.set("rope_parameters", without_theta)), 500000);
  EXPECT_EQ(theta_of(both.set("rope_parameters", with_theta)), 7);
  EXPECT_EQ(theta_of(with(llama_fields, "rope_parameters", without_theta)), 10000);
}

// As in transformers: rope_scaling is the older key and takes precedence over rope_parameters. transformers
// writes only the newer one, so someone added the older one.
TEST(Config, RopeScalingGoesBeforeRopeParameters) {
  const auto rotary_of = [](const Json& json) {
    ModelSource source;
    source.config_json = to_string(json, 0);
    const auto model = open_model(source);
    return decoder_of(model->config()).rotary[0];
  };
  const Json newer = Json::object().set("rope_type", "default").set("rope_theta", 7.0);
  Json both = with(llama_fields, "rope_parameters", newer);
  EXPECT_EQ(rotary_of(both.set("rope_scaling", Json::object())).theta, 7);
  EXPECT_EQ(rotary_of(both).scaling, RotaryScaling::none);
  both.set("rope_scaling", Json::object().set("type", "linear").set("factor", 4.0));
  EXPECT_EQ(rotary_of(both).scaling, RotaryScaling::linear);
  EXPECT_EQ(rotary_of(both).factor, 4);
  EXPECT_EQ(rotary_of(both).theta, 10000);
  EXPECT_EQ(rotary_of(both.set("rope_theta", 9.0)).theta, 9);
}

TEST(Config, OriginalPositionsAreNextToRopeParametersToo) {
  const auto original_of = [](const Json& json) {
    ModelSource source;
    source.config_json = to_string(json, 0);
    const auto model = open_model(source);
    return decoder_of(model->config()).rotary[0].original_positions;
  };
  Json rope = Json::object()
                  .set("rope_type", "llama3")
                  .set("factor", 8.0)
                  .set("low_freq_factor", 1.0)
                  .set("high_freq_factor", 4.0);
  EXPECT_EQ(original_of(with(llama_fields, "rope_parameters", rope)), 40);  // max_position_embeddings
  Json json = with(llama_fields, "rope_parameters", rope.set("original_max_position_embeddings", 32));
  EXPECT_EQ(original_of(json), 32);
  EXPECT_EQ(original_of(json.set("original_max_position_embeddings", 16)), 16);
}

TEST(Config, Gpt2SizesHaveSecondNames) {
  ModelSource source;
  source.config_json =
      R"({"model_type": "gpt2", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 44, )"
      R"("num_hidden_layers": 3,
                           "num_attention_heads": 2, "n_head": 2})";
  const ModelConfig c = open_model(source)->config();
  EXPECT_EQ(c.positions, 40);
  EXPECT_EQ(c.width, 44);
  EXPECT_EQ(c.layers, 3);
  EXPECT_EQ(c.heads, 2);
}

// BLOOM's keys have two names too. BLOOM has no learned positions: the config's number of positions is only
// the training length.
TEST(Config, Bloom) {
  const auto open = [](const std::string& more) {
    ModelSource source;
    source.config_json = R"({"model_type": "bloom")" + more + "}";
    return Model::open(source);
  };
  const auto second =
      open(R"(, "vocab_size": 61, "n_embed": 42, "num_hidden_layers": 3, "num_attention_heads": 3, )"
           R"("seq_length": 40, "n_inner": null)");
  ASSERT_TRUE(second) << second.error().message;
  const ModelConfig& c = (*second)->config();
  EXPECT_EQ(c.width, 42);
  EXPECT_EQ(c.intermediate, 168);
  EXPECT_EQ(c.layers, 3);
  EXPECT_EQ(c.heads, 3);
  EXPECT_EQ(c.positions, 40);
  // slow_but_exact alone changes nothing
  const auto absent = open(R"(, "n_embed": null, "slow_but_exact": true, "n_inner": 256)");
  ASSERT_TRUE(absent) << absent.error().message;
  EXPECT_EQ((*absent)->config().vocabulary, 250880);
  EXPECT_EQ((*absent)->config().width, 64);
  EXPECT_EQ((*absent)->config().layers, 2);
  EXPECT_EQ((*absent)->config().heads, 8);
  EXPECT_EQ((*absent)->config().positions, 2048);
  EXPECT_TRUE((*absent)->config().tied);
  EXPECT_TRUE(open(R"(, "pretraining_tp": 4)"));
  const std::pair<const char*, const char*> refused[] = {
      {R"(, "hidden_size": 64, "n_embed": 48)", "hidden_size is 64 and n_embed 48"},
      {R"(, "n_layer": 2, "num_hidden_layers": 3)", "n_layer is 2 and num_hidden_layers 3"},
      {R"(, "n_head": 4, "num_attention_heads": 8)", "n_head is 4 and num_attention_heads 8"},
      {R"(, "n_head": 7)", "hidden_size 64 is not a multiple of n_head 7"},
      {R"(, "n_head": 0)", "n_head 0"},
      {R"(, "n_inner": 128)", "n_inner is 128: expected 4 times hidden_size"},
      {R"(, "apply_residual_connection_post_layernorm": true)",
       "apply_residual_connection_post_layernorm is not supported"},
      {R"(, "slow_but_exact": true, "pretraining_tp": 4)",
       "slow_but_exact with pretraining_tp 4 is not supported"},
      {R"(, "seq_length": 0)", "number of positions is 0"},
      {R"(, "hidden_dropout": 1)", "dropout rate"},
      {R"(, "layer_norm_epsilon": -1)", "epsilon"}};
  for (const auto& [more, part] : refused) {
    const auto model = open(more);
    ASSERT_FALSE(model) << more;
    EXPECT_EQ(model.error().code, Code::unsupported_field) << more;
    EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
  }
}

TEST(Config, RefusesOtherText) {
  TemporaryDirectory folder;
  ModelSource source;
  source.source = folder / "missing";
  auto model = Model::open(source);
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("qwen2.5-0.5b"), std::string::npos);
  source.source = folder.path();
  EXPECT_EQ(Model::open(source).error().code, Code::io_error);
  for (const char* text : {"", "{", "[]", "3", "null", "{\"model_type\": 3}", "\xff"}) {
    put_file(folder / "config.json", text);
    EXPECT_EQ(Model::open(source).error().code, Code::corrupt) << text;
  }
  put_file(folder / "config.json", std::string(2 << 20, ' '));
  EXPECT_EQ(Model::open(source).error().code, Code::corrupt);
  ModelSource dropout;
  dropout.config_json = small_gpt2();
  for (float p : {-0.1f, 1.0f, 2.0f, std::nanf("")}) {
    dropout.dropout = p;
    EXPECT_EQ(Model::open(dropout).error().code, Code::bad_argument) << p;
  }
}

TEST(Config, DropoutCanBeOverruled) {
  ModelSource source;
  source.config_json = small_gpt2("0.1");
  const auto with_dropout = open_model(source);
  source.dropout = 0.0f;
  const auto without = open_model(source);
  source.config_json = small_gpt2("0.0");
  source.dropout.reset();
  EXPECT_EQ(describe(without->graph()), describe(open_model(source)->graph()));
  EXPECT_NE(describe(without->graph()), describe(with_dropout->graph()));
  EXPECT_TRUE(without->config().json == open_model(source)->config().json);
  source.dropout = 0.1f;  // written as 0.1
  EXPECT_TRUE(open_model(source)->config().json == with_dropout->config().json);
}

// Every rate of an architecture is replaced, in the graph and in an exported config.
TEST(ModelSource, DropoutReplacesAllRatesOfTheConfig) {
  const auto with_rate = [](const std::string& config, float rate) {
    ModelSource source;
    source.config_json = config;
    source.dropout = rate;
    return open_model(source)->config();
  };
  for (const std::string& config : small_models("0.1")) {
    const ModelConfig none = with_rate(config, 0), some = with_rate(config, 0.25f);
    EXPECT_EQ(none.attention_dropout + none.residual_dropout + none.embedding_dropout, 0) << config;
    const auto is = [&](std::string_view type) { return type == architecture_of(some).model_type; };
    size_t keys = 0;
    for (const char* key : {"embd_pdrop", "attn_pdrop", "resid_pdrop", "attention_dropout", "hidden_dropout"})
      if (const Json* rate = some.json.find(key)) {
        EXPECT_EQ(*rate, Json(0.25)) << key << config;
        EXPECT_EQ(*none.json.find(key), Json(0.0)) << key << config;
        ++keys;
      }
    EXPECT_EQ(keys, is("gpt2") ? 3u : is("phi3") || is("bloom") ? 2u : 1u);
    EXPECT_EQ(some.attention_dropout, 0.25f);
    EXPECT_EQ(some.residual_dropout > 0, keys > 1);
  }
}

// Without a replacement each rate comes from its own key of the config.
TEST(ModelSource, RatesComeFromTheConfig) {
  for (const std::string& json : small_models("0.125")) {
    const auto rate_of = [&](std::initializer_list<const char*> keys) {
      return std::any_of(keys.begin(), keys.end(),
                         [&](const char* key) { return json.find(key) != json.npos; })
                 ? 0.125f
                 : 0.0f;
    };
    ModelSource source;
    source.config_json = json;
    const auto model = open_model(source);
    EXPECT_EQ(model->config().embedding_dropout, rate_of({"embd_pdrop"})) << json;
    EXPECT_EQ(model->config().attention_dropout, rate_of({"attn_pdrop", "attention_dropout"})) << json;
    EXPECT_EQ(model->config().residual_dropout, rate_of({"resid_pdrop", "hidden_dropout"})) << json;
  }
}

TEST(Preset, ParametersAreAsPublished) {
  const std::pair<const char*, uint64_t> published[] = {{"gpt2", 124439808},
                                                        {"gpt2-medium", 354823168},
                                                        {"gpt2-large", 774030080},
                                                        {"gpt2-xl", 1557611200},
                                                        {"smollm-135m", 134515008},
                                                        {"smollm-360m", 361821120},
                                                        {"qwen2.5-0.5b", 494032768},
                                                        {"qwen2.5-1.5b", 1543714304},
                                                        {"qwen2.5-3b", 3085938688},
                                                        {"qwen2.5-7b", 7615616512},
                                                        {"qwen3-0.6b", 596049920},
                                                        {"qwen3-1.7b", 1720574976},
                                                        {"qwen3-4b", 4022468096},
                                                        {"qwen3-8b", 8190735360},
                                                        {"llama-1b", 1235814400},
                                                        {"llama-3b", 3212749824},
                                                        {"llama-8b", 8030261248},
                                                        {"smollm3-3b", 3075098624},
                                                        {"phi-3-mini", 3821079552},
                                                        {"gemma3-270m", 268098176},
                                                        {"bloom-560m", 559214592},
                                                        {"bloom-1b7", 1722408960},
                                                        {"gemma3-1b", 999885952},
                                                        {"gemma3-4b", 3880263168},
                                                        {"gemma3-12b", 11766034176},
                                                        {"nano", 858880},
                                                        // The last eight without a head.
                                                        {"bert-base", 108891648},
                                                        {"bert-large", 334092288},
                                                        {"bert-1.3b", 1272164352},
                                                        {"roberta-base", 124055040},
                                                        {"modernbert-base", 149014272},
                                                        {"deberta-v3-small", 141304320},
                                                        {"deberta-v3-base", 183831552},
                                                        {"deberta-v3-large", 434012160}};
  size_t count = 0;
  while (preset_name(count)) ++count;
  EXPECT_EQ(count, std::size(published));
  for (const auto& [name, parameters] : published) {
    ModelSource source;
    source.source = name;
    const auto model = open_model(source);
    ASSERT_TRUE(model) << name;
    EXPECT_EQ(model->graph().parameter_count(), parameters) << name;
    EXPECT_FALSE(model->has_weights());
    uint64_t sum = 0;
    for (int t : model->parameters()) sum += model->graph().at(t).shape.elements();
    EXPECT_EQ(sum, parameters) << name;
  }
}

}  // namespace
}  // namespace stw::config_test
