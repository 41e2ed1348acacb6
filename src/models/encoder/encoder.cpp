#include "src/models/encoder/encoder.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "src/base/elementary.h"

namespace stw {

Result<Activation> parse_activation(const Json& json, const char* key, const char* absent) {
  STW_ASSIGN(name, get_string(json, key, absent));
  if (name == "gelu") return Activation::gelu_erf;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  if (name == "relu") return Activation::relu;
  return Error{Code::unsupported_field, std::string(key) + " \"" + name + "\" is not supported"};
}

namespace {

// Refuses decoders, and positions that are not absolute.
Status check_kind(const Json& json) {
  STW_ASSIGN(positions, get_string(json, "position_embedding_type", "absolute"));
  if (positions != "absolute")
    return Error{Code::unsupported_field,
                 "position_embedding_type \"" + positions + "\" is not supported: expected \"absolute\""};
  for (const char* key : {"is_decoder", "add_cross_attention", "sinusoidal_pos_embds"}) {
    STW_ASSIGN(is_set, get_bool(json, key, false));
    if (is_set) return Error{Code::unsupported_field, std::string(key) + " is not supported"};
  }
  return ok();
}

}  // namespace

Status parse_encoder(const Json& json, ModelConfig& c, const EncoderDefaults& absent,
                     const EncoderKeys& keys) {
  STW_TRY(check_kind(json));
  STW_ASSIGN(vocabulary, get_int(json, "vocab_size", absent.vocabulary));
  STW_ASSIGN(positions, get_int(json, "max_position_embeddings", 512));
  STW_ASSIGN(width, get_int(json, keys.width, absent.width));
  STW_ASSIGN(layers, get_int(json, keys.layers, absent.layers));
  STW_ASSIGN(heads, get_int(json, keys.heads, absent.heads));
  STW_ASSIGN(intermediate, get_int(json, keys.intermediate, absent.intermediate));
  STW_ASSIGN(types, absent.token_types > 0 ? get_int(json, "type_vocab_size", absent.token_types)
                                           : Result<int64_t>(0));
  STW_ASSIGN(activation, parse_activation(json, keys.activation, absent.activation));
  STW_ASSIGN(dropout, get_double(json, keys.dropout, absent.dropout));
  STW_ASSIGN(attention, get_double(json, keys.attention_dropout, absent.dropout));
  STW_ASSIGN(head, find_present(json, keys.head_dropout)
                       ? get_double(json, keys.head_dropout)
                       : Result<double>(absent.head_dropout.value_or(dropout)));
  STW_ASSIGN(range, get_double(json, "initializer_range", 0.02));
  STW_ASSIGN(epsilon, get_double(json, "layer_norm_eps", 1e-12));
  STW_ASSIGN(padding, get_int(json, "pad_token_id", absent.first_position_after_padding ? 1 : 0));
  if (heads < 1 || heads > width || width % heads != 0)
    return Error{Code::unsupported_field, std::string(keys.width) + " " + std::to_string(width) +
                                              " is not a multiple of " + keys.heads + " " +
                                              std::to_string(heads)};
  if (types < 0 || types > 65536)
    return Error{Code::unsupported_field, "type_vocab_size is " + std::to_string(types)};
  STW_ASSIGN(tied, get_bool(json, "tie_word_embeddings", true));
  c.tied = tied;
  const int64_t first_position = absent.first_position_after_padding ? padding + 1 : 0;
  if (first_position < 0 || first_position > 65536)
    return Error{Code::unsupported_field, "pad_token_id is " + std::to_string(padding)};
  c.vocabulary = vocabulary;
  c.positions = positions - first_position;
  c.width = c.embedding_width = width;
  c.layers = layers;
  c.heads = c.kv_heads = static_cast<int>(heads);
  c.head_dim = static_cast<int>(width / heads);
  c.intermediate = intermediate;
  c.token_types = types;
  c.embedding_dropout = c.residual_dropout = static_cast<float>(dropout);
  c.attention_dropout = static_cast<float>(attention);
  c.head_dropout = static_cast<float>(head);
  c.init_std = static_cast<float>(range);
  c.epsilon = static_cast<float>(epsilon);
  c.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim)));
  c.family = EncoderConfig{activation, first_position};
  return ok();
}

namespace {

class EncoderBuilder {
 public:
  EncoderBuilder(const EncoderNames& names, const ModelConfig& config, int64_t sequence, Format compute,
                 GraphInputs optional)
      : names_(names),
        c_(config),
        own_(std::any_cast<const EncoderConfig&>(config.family)),
        b_(architecture_of(config).model_type, sequence, config.vocabulary, compute, optional) {}

  Result<Graph> build() {
    if (task_row(c_.task).of_text) b_.task(c_.task, static_cast<int64_t>(c_.labels.size()), TargetRow::first);
    AttentionRule rule;
    rule.causal = false;
    rule.following = b_.following();
    int x = embeddings();
    if (own_.relative) {
      rule.relative_keys = own_.relative->keys;
      rule.relative_queries = own_.relative->queries;
    }
    for (int64_t layer = 0; layer < c_.layers; ++layer) x = block(layer, x, rule);
    if (task_row(c_.task).has_outputs_of_tokens()) token_head(x);
    else if (!c_.labels.empty()) head(x);
    else if (c_.task == Task::masked_language_model) masked_head(x);
    return b_.finish();
  }

 private:
  LinearWeights matrix(const std::string& name, int64_t inputs, int64_t features) {
    const int weight = b_.parameter(name + ".weight", {features, inputs}, Initializer::normal, c_.init_std);
    return {weight, b_.parameter(name + ".bias", {features}, Initializer::zeros)};
  }
  int linear(int x, const std::string& name, int64_t inputs, int64_t features, const char* label) {
    return b_.linear(x, {matrix(name, inputs, features)}, false, label);
  }
  int norm(int x, const std::string& name, const char* label) { return layer_norm(b_, c_, x, name, label); }

  int embeddings() {
    const std::string name = std::string(names_.prefix) + "embeddings.";
    const auto table = [&](const char* of, int64_t rows) {
      return b_.parameter(name + of + ".weight", {rows, c_.embedding_width}, Initializer::normal,
                          c_.init_std);
    };
    b_.begin(SegmentKind::embedding, -1, -1);
    const int words = words_ = table("word_embeddings", c_.vocabulary),
              positions =
                  own_.has_positions ? table("position_embeddings", c_.positions + own_.first_position) : -1;
    int x;
    if (own_.first_position == 0) x = b_.embedding(words, positions, "embedding");
    else x = b_.embedding(b_.tokens(), words, positions, b_.position_rows(own_.first_position), "embedding");
    if (c_.token_types > 0) {
      const int types =
          b_.embedding(b_.token_types(c_.token_types), table("token_type_embeddings", c_.token_types), -1, -1,
                       "type_embedding");
      x = b_.add(x, types, "embedding_sum");
    }
    const bool projects = names_.always_projects || c_.embedding_width != c_.width;
    if (projects && names_.projects_before_norm)
      x = b_.linear(x,
                    {{b_.parameter(std::string(names_.prefix) + names_.projection + ".weight",
                                   {c_.width, c_.embedding_width}, Initializer::normal, c_.init_std)}},
                    false, "embedding_projection");
    x = b_.dropout(norm(x, name + names_.embeddings_norm, "embedding_norm"), c_.embedding_dropout,
                   "embedding_dropout");
    if (projects && !names_.projects_before_norm)
      x = linear(x, std::string(names_.prefix) + names_.projection, c_.embedding_width, c_.width,
                 "embedding_projection");
    if (own_.relative) relative_table();
    b_.end(x);
    return x;
  }

  void relative_table() {
    const std::string prefix = names_.prefix;
    const RelativeConfig& r = *own_.relative;
    b_.relative_rows(relative_rows(r, b_.sequence()), {r.span, r.buckets, r.most});
    table_ = b_.table(b_.parameter(prefix + names_.relative_table + ".weight",
                                   {2 * own_.relative->span, c_.width}, Initializer::normal, c_.init_std));
    if (!own_.relative->has_norm) return;
    b_.build_tables(true);
    table_ = norm(table_, prefix + names_.relative_norm, "relative_norm");
    b_.build_tables(false);
  }

  // Keys and queries of relative positions for a block.
  int relative(const std::string& block) {
    const RelativeConfig& r = *own_.relative;
    std::vector<LinearWeights> parts;
    const auto add = [&](const char* own, const char* shared) {
      parts.push_back(matrix(block + (r.shares_matrices ? shared : own), c_.width, c_.width));
    };
    if (r.keys) add(names_.relative_key, names_.key);
    if (r.queries) add(names_.relative_query, names_.query);
    b_.build_tables(true);
    const int x = b_.dropout(table_, c_.residual_dropout, "relative_dropout");
    const int kept = b_.keep_table(b_.linear(x, parts, false, "relative"));
    b_.build_tables(false);
    return kept;
  }

  int block(int64_t layer, int x, AttentionRule rule) {
    const std::string name =
        std::string(names_.prefix) + names_.blocks + std::to_string(names_.shares_block ? 0 : layer) + ".";
    b_.begin(SegmentKind::block, static_cast<int>(layer), x);
    const int qkv = b_.linear(
        x,
        {matrix(name + names_.query, c_.width, c_.width), matrix(name + names_.key, c_.width, c_.width),
         matrix(name + names_.value, c_.width, c_.width)},
        false, "qkv");
    if (own_.relative) rule.relative = relative(name);
    int attended = b_.attention(qkv, c_.heads, c_.heads, c_.head_dim, c_.attention_scale,
                                c_.attention_dropout, "attention", rule);
    if (layer + 1 == c_.layers) {
      attended = b_.take_text_rows(attended, "attention_rows");
      x = b_.take_text_rows(x, "input_rows");
    }
    int out = linear(attended, name + names_.attention_out, c_.width, c_.width, "attn_out");
    const auto dropout = [&](bool drops, const char* label) {
      return b_.dropout(out, drops ? c_.residual_dropout : 0, label);
    };
    out = b_.add(x, dropout(names_.attention_output_dropout, "attn_dropout"), "attn_residual");
    const int middle = norm(out, name + names_.attention_norm, "attn_norm");
    const int up = linear(middle, name + names_.up, c_.width, c_.intermediate, "ffn_up");
    out = linear(b_.activation(up, own_.gelu, "gelu"), name + names_.down, c_.intermediate, c_.width,
                 "ffn_out");
    out = b_.add(middle, dropout(names_.feed_forward_dropout, "ffn_dropout"), "ffn_residual");
    x = norm(out, name + names_.output_norm, "ffn_norm");
    b_.end(x);
    return x;
  }

  void token_head(int x) {
    if (c_.head_dropout > 0) {
      b_.begin(SegmentKind::final, -1, x);
      x = b_.dropout(x, c_.head_dropout, "head_dropout");
      b_.end(x);
    }
    add_token_head(b_, c_, x);
  }

  void masked_head(int x) {
    const MaskedHead& head = *architecture_of(c_).masked_head;
    b_.task(Task::masked_language_model, 0, TargetRow::every);
    b_.begin(SegmentKind::final, -1, x);
    // The embedding tables' width, as the word table gives the logits.
    x = linear(x, head.dense, c_.width, c_.embedding_width, "transform");
    x = norm(b_.activation(x, head.gelu.value_or(own_.gelu), "transform_gelu"), head.norm, "transform_norm");
    b_.end(x);
    add_masked_logits(b_, c_, x, words_, c_.init_std);
  }

  // The loss reads the first token of each text.
  void head(int x) {
    const auto labels = static_cast<int64_t>(c_.labels.size());
    b_.begin(SegmentKind::final, -1, x);
    x = b_.dropout(x, names_.dropout_before_pooler ? c_.head_dropout : c_.pooler_dropout,
                   "pooler_input_dropout");
    x = b_.activation(linear(x, names_.pooler, c_.width, c_.width, "pooler"),
                      own_.pooler_activation.value_or(names_.pooler_activation), "pooled");
    x = b_.dropout(x, c_.head_dropout, "pooled_dropout");
    b_.end(x);
    b_.begin(SegmentKind::head, -1, x);
    b_.loss(linear(x, names_.classifier, c_.width, labels, "logits"));
  }

  const EncoderNames& names_;
  const ModelConfig& c_;
  const EncoderConfig& own_;
  GraphBuilder b_;
  int words_ = -1;  // the word embedding table
  int table_ = -1;  // of relative positions
};

}  // namespace

std::vector<int32_t> relative_rows(const RelativeConfig& r, int64_t sequence) {
  const auto log32 = [](float x) { return static_cast<float>(portable_log(static_cast<double>(x))); };
  const int64_t middle = r.buckets / 2;
  const auto bucket = [&](int64_t distance) {
    const int64_t size = std::abs(distance);
    if (r.buckets <= 0 || size <= middle) return distance;
    const auto whole = static_cast<float>(middle);
    const float share =
        log32(static_cast<float>(size) / whole) /
        log32(static_cast<float>(static_cast<double>(r.most - 1) / static_cast<double>(middle)));
    const auto row = static_cast<int64_t>(std::ceil(share * static_cast<float>(middle - 1)) + whole);
    return distance < 0 ? -row : row;
  };
  std::vector<int32_t> rows;
  for (int64_t distance = 1 - sequence; distance < sequence; ++distance)
    rows.push_back(static_cast<int32_t>(std::clamp(bucket(distance) + r.span, int64_t{0}, 2 * r.span - 1)));
  return rows;
}

Result<Graph> build_encoder(const EncoderNames& names, const ModelConfig& config, int64_t sequence,
                            Format compute, GraphInputs optional) {
  return EncoderBuilder(names, config, sequence, compute, optional).build();
}

}  // namespace stw
