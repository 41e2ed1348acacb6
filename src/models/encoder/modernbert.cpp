// ModernBERT (Warner et al., arXiv 2412.13663): an encoder with rotary positions, norms before both halves of
// a block, and GeGLU. Every third block by default has global attention. The others have local attention,
// with rotary angles of their own.
#include "src/models/encoder/modernbert.h"

#include <cmath>

#include "src/models/encoder/encoder.h"

namespace stw {

namespace {

constexpr int of_global_layers = 0, of_local_layers = 1;  // indices into ModernBertConfig::rotary

// Newer configs have an object for each kind of layer in "rope_parameters". Older ones have two thetas, and
// perhaps one "rope_scaling" for both kinds. Source: transformers, configuration_modernbert.py.
Result<std::vector<RotaryConfig>> parse_rotaries_of_kinds(const Json& json, const ModelConfig& c) {
  std::vector<RotaryConfig> rotaries;
  STW_ASSIGN(scaling, find_object(json, "rope_scaling"));
  STW_ASSIGN(newer, find_object(json, "rope_parameters"));
  // Older versions of transformers replaced null by the global theta, newer ones fail.
  for (const char* key : {"global_rope_theta", "local_rope_theta"})
    if (const Json* found = json.find(key); found && found->is_null())
      return Error{Code::unsupported_field, std::string(key) + " null is not supported"};
  if (scaling && find_present(*scaling, "type") && !find_present(*scaling, "rope_type"))
    return Error{Code::unsupported_field,
                 "rope_scaling has a \"type\", which is read in two ways; expected \"rope_type\""};
  struct Layers {
    const char *kind, *theta;
    double absent_theta;
  };
  for (const auto& [kind, theta_key, absent_theta] : {Layers{"full_attention", "global_rope_theta", 160000.0},
                                                      {"sliding_attention", "local_rope_theta", 10000.0}}) {
    Json parameters = Json::object();
    if (newer) {
      STW_ASSIGN(found, find_object(*newer, kind));
      if (found) parameters = *found;
    }
    if (scaling)
      for (const auto& [key, value] : scaling->members()) parameters.set(key, value);
    STW_ASSIGN(theta, get_double(json, theta_key, absent_theta));
    STW_ASSIGN(rotary, parse_rotary_parameters(json, &parameters, c.head_dim,
                                               {.now = c.positions, .outer_count_first = false}, theta));
    if (rotary.rotary_dim != c.head_dim)
      return Error{Code::unsupported_field, "partial_rotary_factor is not supported"};
    rotaries.push_back(rotary);
  }
  return rotaries;
}

// Reads which layers are local, and their window.
Result<std::vector<LayerAttention>> parse_layers(const Json& json, const ModelConfig& c) {
  if (find_present(json, "sliding_window"))
    return Error{
        Code::unsupported_field,
        "sliding_window is not supported: expected local_attention, the keys to both sides together"};
  STW_ASSIGN(local, get_int(json, "local_attention", 128));
  STW_ASSIGN(every, get_int(json, "global_attn_every_n_layers", 3));
  if (local < 0) return Error{Code::unsupported_field, "local_attention is " + std::to_string(local)};
  if (every < 1)
    return Error{Code::unsupported_field, "global_attn_every_n_layers is " + std::to_string(every)};
  std::vector<LayerAttention> layers = full_attention(c.layers);
  const auto is_local = [&](int64_t layer) { return layer % every != 0; };
  STW_TRY(set_windows(json, c, local / 2 + 1, is_local, layers));
  for (LayerAttention& layer : layers) layer.rotary = layer.window > 0 ? of_local_layers : of_global_layers;
  return layers;
}

Result<Gate> parse_gate(const Json& json) {
  STW_ASSIGN(name, get_string(json, "hidden_activation", "gelu"));
  if (name == "gelu") return Gate::gelu_erf;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Gate::gelu_tanh;
  if (name == "silu" || name == "swish") return Gate::silu;
  return Error{Code::unsupported_field, "hidden_activation \"" + name + "\" is not supported"};
}

Result<bool> parse_pooling(const Json& json) {
  STW_ASSIGN(pooling, get_string(json, "classifier_pooling", "cls"));
  if (pooling != "cls" && pooling != "mean")
    return Error{Code::unsupported_field,
                 "classifier_pooling \"" + pooling + "\" is not supported: expected \"cls\" or \"mean\""};
  return pooling == "mean";
}

constexpr DropoutRate modernbert_rates[] = {{"embedding_dropout", &ModelConfig::embedding_dropout},
                                            {"attention_dropout", &ModelConfig::attention_dropout},
                                            {"mlp_dropout", &ModelConfig::residual_dropout},
                                            {"classifier_dropout", &ModelConfig::head_dropout}};

Status parse_rates(const Json& json, ModelConfig& c) {
  for (const DropoutRate& dropout : modernbert_rates) {
    STW_ASSIGN(rate, get_double(json, dropout.key, 0.0));
    c.*dropout.rate = static_cast<float>(rate);
  }
  STW_ASSIGN(range, get_double(json, "initializer_range", 0.02));
  STW_ASSIGN(epsilon, get_double(json, "norm_eps", 1e-5));
  c.init_std = static_cast<float>(range);
  c.epsilon = static_cast<float>(epsilon);
  return ok();
}

Status parse_modernbert(const Json& json, ModelConfig& c) {
  for (const char* key : {"is_decoder", "add_cross_attention"}) {
    STW_ASSIGN(is_set, get_bool(json, key, false));
    if (is_set) return Error{Code::unsupported_field, std::string(key) + " is not supported"};
  }
  STW_ASSIGN(vocabulary, get_int(json, "vocab_size", 50368));
  STW_ASSIGN(positions, get_int(json, "max_position_embeddings", 8192));
  STW_ASSIGN(width, get_int(json, "hidden_size", 768));
  STW_ASSIGN(layers, get_int(json, "num_hidden_layers", 22));
  STW_ASSIGN(heads, get_int(json, "num_attention_heads", 12));
  STW_ASSIGN(intermediate, get_int(json, "intermediate_size", 1152));
  if (heads < 1 || heads > width || width % heads != 0)
    return Error{Code::unsupported_field, "hidden_size " + std::to_string(width) +
                                              " is not a multiple of num_attention_heads " +
                                              std::to_string(heads)};
  STW_ASSIGN(head_dim, get_int(json, "head_dim", width / heads));
  if (head_dim != width / heads)
    return Error{Code::unsupported_field, "head_dim is " + std::to_string(head_dim) +
                                              ", expected hidden_size / num_attention_heads, " +
                                              std::to_string(width / heads)};
  if (head_dim > 65536) return Error{Code::unsupported_field, "head_dim is " + std::to_string(head_dim)};
  STW_ASSIGN(gate, parse_gate(json));
  STW_ASSIGN(activation, parse_activation(json, "classifier_activation"));
  STW_ASSIGN(reads_mean, parse_pooling(json));
  STW_ASSIGN(norm_bias, get_bool(json, "norm_bias", false));
  STW_ASSIGN(attention_bias, get_bool(json, "attention_bias", false));
  STW_ASSIGN(mlp_bias, get_bool(json, "mlp_bias", false));
  STW_ASSIGN(head_bias, get_bool(json, "classifier_bias", false));
  STW_ASSIGN(logits_bias, get_bool(json, "decoder_bias", true));
  STW_ASSIGN(tied, get_bool(json, "tie_word_embeddings", true));
  c.vocabulary = vocabulary;
  c.positions = positions;
  c.width = c.embedding_width = width;
  c.layers = layers;
  c.heads = c.kv_heads = static_cast<int>(heads);
  c.head_dim = static_cast<int>(head_dim);
  c.intermediate = intermediate;
  c.tied = tied;
  c.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim)));
  STW_TRY(parse_rates(json, c));
  STW_ASSIGN(rotary, parse_rotaries_of_kinds(json, c));
  STW_ASSIGN(layer_attention, parse_layers(json, c));
  c.family = ModernBertConfig{.attention_bias = attention_bias,
                              .mlp_bias = mlp_bias,
                              .norm_bias = norm_bias,
                              .head_bias = head_bias,
                              .logits_bias = logits_bias,
                              .head_reads_mean = reads_mean,
                              .gate = gate,
                              .head_activation = activation,
                              .rotary = std::move(rotary),
                              .layers = std::move(layer_attention)};
  return ok();
}

class ModernBertBuilder {
 public:
  ModernBertBuilder(const ModelConfig& config, int64_t sequence, Format compute, GraphInputs optional)
      : c_(config),
        own_(std::any_cast<const ModernBertConfig&>(config.family)),
        b_(architecture_of(config).model_type, sequence, config.vocabulary, compute, optional),
        following_(b_.following()) {
    for (const RotaryConfig& rotary : own_.rotary)
      b_.rotary(rotary_frequencies(rotary, sequence), static_cast<float>(rotary.table_scale));
    // The initial weights of transformers, except that values far from 0 are not redrawn.
    out_deviation_ = static_cast<float>(static_cast<double>(c_.init_std) /
                                        std::sqrt(2.0 * static_cast<double>(c_.layers)));
  }

  Result<Graph> build() {
    if (!c_.labels.empty())
      b_.task(c_.task, static_cast<int64_t>(c_.labels.size()),
              task_row(c_.task).has_targets_of_texts() ? TargetRow::first : TargetRow::every);
    int x = embeddings();
    for (int64_t layer = 0; layer < c_.layers; ++layer) x = block(layer, x);
    b_.begin(SegmentKind::final, -1, x);
    x = norm(x, "model.final_norm", "final_norm");
    const bool is_masked = c_.task == Task::masked_language_model;
    if (is_masked) {
      b_.task(c_.task, 0, TargetRow::every);
      x = prediction(x);
    } else if (!c_.labels.empty()) {
      x = head(x);
    }
    b_.end(x);
    if (is_masked) add_masked_logits(b_, c_, x, words_, out_deviation_, own_.logits_bias);
    else if (!c_.labels.empty()) classifier(x);
    return b_.finish();
  }

 private:
  int linear(int x, const std::string& name, int64_t features, bool bias, float deviation,
             const char* label) {
    const int weight =
        b_.parameter(name + ".weight", {features, b_.features(x)}, Initializer::normal, deviation);
    return b_.linear(x, {{weight, bias ? b_.parameter(name + ".bias", {features}, Initializer::zeros) : -1}},
                     false, label);
  }
  int norm(int x, const std::string& name, const char* label) {
    return layer_norm(b_, c_, x, name, label, own_.norm_bias);
  }

  int embeddings() {
    b_.begin(SegmentKind::embedding, -1, -1);
    words_ = b_.parameter("model.embeddings.tok_embeddings.weight", {c_.vocabulary, c_.width},
                          Initializer::normal, c_.init_std);
    int x = b_.embedding(b_.tokens(), words_, -1, -1, "embedding");
    x = b_.dropout(norm(x, "model.embeddings.norm", "embedding_norm"), c_.embedding_dropout,
                   "embedding_dropout");
    b_.end(x);
    return x;
  }

  int block(int64_t layer, int x) {
    const LayerAttention& how = own_.layers[layer];
    const std::string name = "model.layers." + std::to_string(layer) + ".";
    b_.begin(SegmentKind::block, static_cast<int>(layer), x);
    // The first block has no norm here, as the embeddings end with one.
    const int n = layer == 0 ? x : norm(x, name + "attn_norm", "attn_norm");
    int qkv = linear(n, name + "attn.Wqkv", 3 * c_.width, own_.attention_bias, c_.init_std, "qkv");
    qkv = b_.rope(qkv, how.rotary, c_.heads, c_.heads, c_.head_dim, "qkv_rope");
    const AttentionRule rule{.window = how.window, .causal = false, .following = following_};
    int attended = b_.attention(qkv, c_.heads, c_.heads, c_.head_dim, c_.attention_scale,
                                c_.attention_dropout, "attention", rule);
    if (layer + 1 == c_.layers && !own_.head_reads_mean) {
      attended = b_.take_text_rows(attended, "attention_rows");
      x = b_.take_text_rows(x, "input_rows");
    }
    int out = linear(attended, name + "attn.Wo", c_.width, own_.attention_bias, out_deviation_, "attn_out");
    const int middle = b_.add(x, b_.dropout(out, c_.attention_dropout, "attn_dropout"), "attn_residual");
    const int up = linear(norm(middle, name + "mlp_norm", "ffn_norm"), name + "mlp.Wi", 2 * c_.intermediate,
                          own_.mlp_bias, c_.init_std, "gate_up");
    const int activated = b_.gated(up, own_.gate == Gate::silu ? "swiglu" : "geglu", own_.gate);
    out = linear(b_.dropout(activated, c_.residual_dropout, "ffn_dropout"), name + "mlp.Wo", c_.width,
                 own_.mlp_bias, out_deviation_, "ffn_out");
    x = b_.add(middle, out, "ffn_residual");
    b_.end(x);
    return x;
  }

  // The layers that all heads begin with.
  int prediction(int x) {
    x = linear(x, "head.dense", c_.width, own_.head_bias, out_deviation_, "pooler");
    return norm(b_.activation(x, own_.head_activation, "pooled"), "head.norm", "pooled_norm");
  }
  // The loss reads all tokens, or the first one of each text.
  int head(int x) {
    if (task_row(c_.task).of_text && own_.head_reads_mean)
      x = b_.take_text_rows(b_.document_mean(x, "pooled_mean"), "mean_rows");
    return b_.dropout(prediction(x), c_.head_dropout, "pooled_dropout");
  }
  void classifier(int x) {
    b_.begin(SegmentKind::head, -1, x);
    const auto deviation = static_cast<float>(1 / std::sqrt(static_cast<double>(c_.width)));
    b_.loss(linear(x, "classifier", static_cast<int64_t>(c_.labels.size()), true, deviation, "logits"));
  }

  const ModelConfig& c_;
  const ModernBertConfig& own_;
  GraphBuilder b_;
  int following_;
  int words_ = -1;  // the word embedding table
  float out_deviation_ = 0;
};

Result<Graph> build_modernbert(const ModelConfig& c, int64_t sequence, Format compute, GraphInputs optional) {
  return ModernBertBuilder(c, sequence, compute, optional).build();
}

constexpr const char* modernbert_head[] = {"head.dense.weight", "head.dense.bias",   "head.norm.weight",
                                           "head.norm.bias",    "classifier.weight", "classifier.bias"};

// With sparse_prediction transformers computes no logits for tokens with the label sparse_pred_ignore_index.
// The loss is the same, unless that value is a token's id.
Status check_sparse_prediction(const Json& json) {
  STW_ASSIGN(is_sparse, get_bool(json, "sparse_prediction", false));
  STW_ASSIGN(ignored, get_int(json, "sparse_pred_ignore_index", -100));
  if (is_sparse && ignored >= 0)
    return Error{Code::unsupported_field,
                 "sparse_pred_ignore_index " + std::to_string(ignored) +
                     " is not supported: expected a negative one, which no token has"};
  return ok();
}
constexpr MaskedHead modernbert_masked = {"head.dense",   "head.norm", "decoder",
                                          "decoder.bias", {},          check_sparse_prediction};

}  // namespace

extern const Architecture modernbert_architecture = {
    .model_type = "modernbert",
    .parse = parse_modernbert,
    .build = build_modernbert,
    .class_name = "ModernBert",
    .optional_prefix = "model.",
    .dropouts = modernbert_rates,
    .is_encoder = true,
    .head_parameters = modernbert_head,
    .token_head = {.module = "classifier",
                   .fallback_rate = &ModelConfig::head_dropout,
                   .shares_text_head = true},
    .span_head = {.module = "classifier", .rate = &ModelConfig::head_dropout, .shares_text_head = true},
    .masked_head = &modernbert_masked};

}  // namespace stw
