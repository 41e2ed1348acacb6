// BERT (Devlin et al., arXiv 1810.04805), and the encoders whose files use its names and keys: RoBERTa (Liu
// et al., arXiv 1907.11692), XLM-RoBERTa (Conneau et al., arXiv 1911.02116), CamemBERT (Martin et al., arXiv
// 1911.03894) and ELECTRA (Clark et al., arXiv 2003.10555).
#include "src/models/encoder/encoder.h"

namespace stw {

namespace {

constexpr EncoderNames with_names_of_bert(const char* prefix, const char* pooler, const char* classifier,
                                          Activation activation, bool dropout_before_pooler) {
  return {prefix,
          "LayerNorm",
          "encoder.layer.",
          "attention.self.query",
          "attention.self.key",
          "attention.self.value",
          "attention.output.dense",
          "attention.output.LayerNorm",
          "intermediate.dense",
          "output.dense",
          "output.LayerNorm",
          pooler,
          classifier,
          activation,
          dropout_before_pooler};
}
constexpr EncoderNames bert_names =
    with_names_of_bert("bert.", "bert.pooler.dense", "classifier", Activation::tanh, false);
constexpr EncoderNames roberta_names =
    with_names_of_bert("roberta.", "classifier.dense", "classifier.out_proj", Activation::tanh, true);
constexpr EncoderNames electra_names =
    with_names_of_bert("electra.", "classifier.dense", "classifier.out_proj", Activation::gelu_erf, true);

Status parse_bert(const Json& json, ModelConfig& c) { return parse_encoder(json, c, {}); }
Status parse_roberta(const Json& json, ModelConfig& c) {
  EncoderDefaults absent;
  absent.vocabulary = 50265;
  absent.first_position_after_padding = true;
  return parse_encoder(json, c, absent);
}
Status parse_xlm_roberta(const Json& json, ModelConfig& c) {
  EncoderDefaults absent;
  absent.first_position_after_padding = true;
  return parse_encoder(json, c, absent);
}
Status parse_electra(const Json& json, ModelConfig& c) {
  EncoderDefaults absent;
  absent.width = 256, absent.heads = 4, absent.intermediate = 1024;
  STW_TRY(parse_encoder(json, c, absent));
  STW_ASSIGN(embeddings, get_int(json, "embedding_size", 128));
  if (embeddings < 1)
    return Error{Code::unsupported_field,
                 "embedding_size is " + std::to_string(embeddings) + ": expected 1 or more"};
  c.embedding_width = embeddings;
  return ok();
}

template <const EncoderNames& names>
Result<Graph> build_with(const ModelConfig& c, int64_t sequence, Format compute, GraphInputs optional) {
  return build_encoder(names, c, sequence, compute, optional);
}

constexpr DropoutRate bert_rates[] = {{"hidden_dropout_prob", &ModelConfig::embedding_dropout},
                                      {"hidden_dropout_prob", &ModelConfig::residual_dropout},
                                      {"attention_probs_dropout_prob", &ModelConfig::attention_dropout},
                                      {"classifier_dropout", &ModelConfig::head_dropout}};
constexpr const char* bert_head[] = {"bert.pooler.dense.weight", "bert.pooler.dense.bias",
                                     "classifier.weight", "classifier.bias"};
constexpr const char* roberta_head[] = {"classifier.dense.weight", "classifier.dense.bias",
                                        "classifier.out_proj.weight", "classifier.out_proj.bias"};
constexpr MaskedHead bert_masked = {"cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
                                    "cls.predictions.decoder", "cls.predictions.bias"};
constexpr MaskedHead roberta_masked = {"lm_head.dense", "lm_head.layer_norm", "lm_head.decoder",
                                       "lm_head.bias", Activation::gelu_erf};
constexpr MaskedHead electra_masked = {"generator_predictions.dense", "generator_predictions.LayerNorm",
                                       "generator_lm_head", "generator_lm_head.bias", Activation::gelu_erf};

constexpr Architecture encoder(const char* type, Status (*parse)(const Json&, ModelConfig&),
                               Result<Graph> (*build)(const ModelConfig&, int64_t, Format, GraphInputs),
                               const char* class_name, const char* prefix, std::span<const char* const> head,
                               const MaskedHead& masked) {
  return {.model_type = type,
          .parse = parse,
          .build = build,
          .class_name = class_name,
          .optional_prefix = prefix,
          .dropouts = bert_rates,
          .is_encoder = true,
          .head_parameters = head,
          .token_head = {.module = "classifier", .fallback_rate = &ModelConfig::residual_dropout},
          .span_head = {.module = "qa_outputs"},
          .masked_head = &masked};
}

}  // namespace

extern const Architecture bert_architecture =
    encoder("bert", parse_bert, build_with<bert_names>, "Bert", "bert.", bert_head, bert_masked);
extern const Architecture roberta_architecture = encoder("roberta", parse_roberta, build_with<roberta_names>,
                                                         "Roberta", "roberta.", roberta_head, roberta_masked);
extern const Architecture xlm_roberta_architecture =
    encoder("xlm-roberta", parse_xlm_roberta, build_with<roberta_names>, "XLMRoberta", "roberta.",
            roberta_head, roberta_masked);
extern const Architecture camembert_architecture =
    encoder("camembert", parse_xlm_roberta, build_with<roberta_names>, "Camembert", "roberta.", roberta_head,
            roberta_masked);
extern const Architecture electra_architecture = encoder("electra", parse_electra, build_with<electra_names>,
                                                         "Electra", "electra.", roberta_head, electra_masked);

}  // namespace stw
