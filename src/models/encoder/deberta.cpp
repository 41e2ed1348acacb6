// DeBERTa-v2 and v3 (He et al., arXiv 2006.03654 and 2111.09543): BERT without absolute positions. Attention
// adds scores of the content with relative positions, and of relative positions with the content. The keys
// and queries of relative positions are those of a table that all blocks share, behind a norm of its own.
#include <algorithm>
#include <cmath>

#include "src/models/encoder/encoder.h"

namespace stw {

namespace {

constexpr EncoderNames deberta_names = {.prefix = "deberta.",
                                        .embeddings_norm = "LayerNorm",
                                        .blocks = "encoder.layer.",
                                        .query = "attention.self.query_proj",
                                        .key = "attention.self.key_proj",
                                        .value = "attention.self.value_proj",
                                        .attention_out = "attention.output.dense",
                                        .attention_norm = "attention.output.LayerNorm",
                                        .up = "intermediate.dense",
                                        .down = "output.dense",
                                        .output_norm = "output.LayerNorm",
                                        .pooler = "pooler.dense",
                                        .classifier = "classifier",
                                        .pooler_activation = Activation::gelu_erf,
                                        .dropout_before_pooler = false,
                                        .projection = "embeddings.embed_proj",
                                        .projects_before_norm = true,
                                        .relative_table = "encoder.rel_embeddings",
                                        .relative_norm = "encoder.LayerNorm",
                                        .relative_key = "attention.self.pos_key_proj",
                                        .relative_query = "attention.self.pos_query_proj"};

constexpr EncoderKeys keys_of_deberta = {.head_dropout = "cls_dropout"};

Error unsupported_setting(const std::string& what) { return {Code::unsupported_field, what}; }

// The words of a list, or of a text with | between them. None if the key is absent.
Result<std::vector<std::string>> get_words(const Json& json, const char* key) {
  std::vector<std::string> words;
  const Json* const given = find_present(json, key);
  if (!given) return words;
  if (given->is_array()) {
    for (const Json& item : given->elements()) {
      if (!item.is_string()) return unsupported_setting(std::string(key) + ": expected a list of strings");
      words.push_back(*item.as_string());
    }
    return words;
  }
  STW_ASSIGN(text, get_string(json, key));
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('|', at), text.size());
    std::string word;
    for (const char c : text.substr(at, end - at))
      if (c != ' ') word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (!word.empty()) words.push_back(std::move(word));
    at = end + 1;
  }
  return words;
}

// Refuses layers that are not built, by name.
Status check_layers(const Json& json, const ModelConfig& c) {
  STW_ASSIGN(kernel, get_int(json, "conv_kernel_size", 0));
  if (kernel > 0)
    return unsupported_setting("conv_kernel_size is " + std::to_string(kernel) +
                               ": the convolution after the first layer is not supported");
  STW_ASSIGN(head_size, get_int(json, "attention_head_size", c.head_dim));
  if (head_size != c.head_dim)
    return unsupported_setting("attention_head_size " + std::to_string(head_size) +
                               " is not supported: expected hidden_size / num_attention_heads");
  STW_ASSIGN(pooled, get_int(json, "pooler_hidden_size", c.width));
  if (pooled != c.width)
    return unsupported_setting("pooler_hidden_size " + std::to_string(pooled) +
                               " is not supported: expected hidden_size " + std::to_string(c.width));
  return ok();
}

Result<RelativeConfig> parse_relative(const Json& json, RelativeConfig r) {
  STW_ASSIGN(positions, get_int(json, "max_position_embeddings", 512));
  STW_ASSIGN(most, get_int(json, "max_relative_positions", -1));
  STW_ASSIGN(buckets, get_int(json, "position_buckets", -1));
  STW_ASSIGN(shares, get_bool(json, "share_att_key", false));
  STW_ASSIGN(norms, get_words(json, "norm_rel_ebd"));
  r.most = most < 1 ? positions : most;
  r.buckets = std::max<int64_t>(buckets, 0);
  r.span = r.buckets > 0 ? r.buckets : r.most;
  r.shares_matrices = shares;
  r.has_norm = std::find(norms.begin(), norms.end(), "layer_norm") != norms.end();
  if (r.most < 1)
    return unsupported_setting("max_position_embeddings " + std::to_string(r.most) +
                               ": expected at least 1, since max_relative_positions is not set");
  if (r.span > 65536)
    return unsupported_setting("max_relative_positions and position_buckets give a table of " +
                               std::to_string(r.span) + " positions: expected 1 to 65536");
  if (r.most > 65536)
    return unsupported_setting("distances up to " + std::to_string(r.most) +
                               " are not supported: expected at most 65536");
  if (r.buckets == 1) return unsupported_setting("position_buckets 1: expected at least 2 buckets, or none");
  if (r.buckets > 0 && r.most - 1 <= r.buckets / 2)
    return unsupported_setting("position_buckets " + std::to_string(r.buckets) + " contradicts " +
                               (most < 1 ? "max_position_embeddings " : "max_relative_positions ") +
                               std::to_string(r.most) + ": expected at least " +
                               std::to_string(r.buckets / 2 + 2));
  // The kernels take tables whose row grows by at most one from one distance to the next.
  const std::vector<int32_t> rows = relative_rows(r, r.most + 2);
  for (size_t k = 1; k < rows.size(); ++k)
    if (rows[k] - rows[k - 1] > 1)
      return unsupported_setting(
          "position_buckets " + std::to_string(r.buckets) + " are too many for distances up to " +
          std::to_string(r.most) +
          " (max_relative_positions, or else max_position_embeddings): some would stay "
          "empty, which is not supported");
  return r;
}

Result<Activation> parse_pooler_activation(const Json& json) {
  STW_ASSIGN(name, get_string(json, "pooler_hidden_act", "gelu"));
  if (name == "tanh") return Activation::tanh;
  return parse_activation(json, "pooler_hidden_act");
}

Status parse_deberta(const Json& json, ModelConfig& c) {
  EncoderDefaults absent{
      .vocabulary = 128100, .width = 1536, .layers = 24, .heads = 24, .intermediate = 6144};
  absent.token_types = 0;
  STW_TRY(parse_encoder(json, c, absent, keys_of_deberta));
  STW_ASSIGN(epsilon, get_double(json, "layer_norm_eps", 1e-7));
  STW_ASSIGN(types, get_int(json, "type_vocab_size", 0));
  STW_ASSIGN(embedding, get_int(json, "embedding_size", c.width));
  STW_ASSIGN(has_positions, get_bool(json, "position_biased_input", true));
  STW_ASSIGN(pooler_dropout, get_double(json, "pooler_dropout", 0));
  STW_ASSIGN(pooler_activation, parse_pooler_activation(json));
  STW_ASSIGN(is_relative, get_bool(json, "relative_attention", false));
  STW_ASSIGN(kinds, get_words(json, "pos_att_type"));
  STW_TRY(check_layers(json, c));
  if (types < 0 || types > 65536)
    return unsupported_setting("type_vocab_size is " + std::to_string(types) + ": expected 0 to 65536");
  if (embedding < 1 || embedding > 65536)
    return unsupported_setting("embedding_size is " + std::to_string(embedding) + ": expected 1 to 65536");
  if (has_positions && c.positions < 1)
    return unsupported_setting("position_biased_input needs positions: max_position_embeddings is " +
                               std::to_string(c.positions));
  EncoderConfig own = std::any_cast<EncoderConfig>(c.family);
  RelativeConfig relative;
  for (const std::string& kind : kinds) {
    if (kind != "c2p" && kind != "p2c")
      return unsupported_setting("pos_att_type \"" + kind + "\" is not supported: expected c2p and p2c");
    (kind == "c2p" ? relative.keys : relative.queries) = true;
  }
  // transformers divides by this size even if attention is not relative.
  const int factor = 1 + relative.keys + relative.queries;
  c.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim * factor)));
  if (is_relative) {
    STW_ASSIGN(parsed, parse_relative(json, relative));
    if (parsed.keys || parsed.queries) own.relative = parsed;
    else return unsupported_setting("relative_attention needs a pos_att_type: c2p, p2c or both");
  }
  own.has_positions = has_positions;
  own.pooler_activation = pooler_activation;
  c.epsilon = static_cast<float>(epsilon);
  c.token_types = types;
  c.embedding_width = embedding;
  c.pooler_dropout = static_cast<float>(pooler_dropout);
  // Without a table of positions, a text may have any length.
  if (!has_positions) c.longest = int64_t{1} << 20;
  c.family = own;
  return ok();
}

Result<Graph> build_deberta(const ModelConfig& c, int64_t sequence, Format compute, GraphInputs optional) {
  return build_encoder(deberta_names, c, sequence, compute, optional);
}

Status check_legacy_head(const Json& json) {
  STW_ASSIGN(is_legacy, get_bool(json, "legacy", true));
  if (is_legacy) return ok();
  return Error{Code::unsupported_field, "legacy false is not supported: expected the head cls.predictions"};
}

constexpr DropoutRate deberta_rates[] = {{"hidden_dropout_prob", &ModelConfig::embedding_dropout},
                                         {"hidden_dropout_prob", &ModelConfig::residual_dropout},
                                         {"attention_probs_dropout_prob", &ModelConfig::attention_dropout},
                                         {"pooler_dropout", &ModelConfig::pooler_dropout},
                                         {"cls_dropout", &ModelConfig::head_dropout}};
constexpr const char* deberta_head[] = {"pooler.dense.weight", "pooler.dense.bias", "classifier.weight",
                                        "classifier.bias"};
constexpr MaskedHead deberta_masked = {"cls.predictions.transform.dense",
                                       "cls.predictions.transform.LayerNorm",
                                       "cls.predictions.decoder",
                                       "cls.predictions.bias",
                                       {},
                                       check_legacy_head};

}  // namespace

extern const Architecture deberta_v2_architecture = {
    .model_type = "deberta-v2",
    .parse = parse_deberta,
    .build = build_deberta,
    .class_name = "DebertaV2",
    .optional_prefix = "deberta.",
    .dropouts = deberta_rates,
    .is_encoder = true,
    .head_parameters = deberta_head,
    .token_head = {.module = "classifier",
                   .dropout = nullptr,
                   .fallback_rate = &ModelConfig::residual_dropout},
    .span_head = {.module = "qa_outputs"},
    .masked_head = &deberta_masked};

}  // namespace stw
