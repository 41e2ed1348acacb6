// The part of ModernBERT's configuration that only its parser and builder, and tests, read.
#pragma once
#include <vector>

#include "planner/graph/graph.h"
#include "src/models/layer_attention.h"
#include "src/models/rotary.h"

namespace stw {

struct ModernBertConfig {  // ModelConfig::family
  bool attention_bias, mlp_bias;
  bool norm_bias;        // LayerNorms have a bias
  bool head_bias;        // the head's first matrix has a bias, whatever the task
  bool logits_bias;      // logits of a masked language model have a bias
  bool head_reads_mean;  // a classifier reads the mean of a text's tokens, not the first token
  Gate gate;
  Activation head_activation;
  std::vector<RotaryConfig> rotary;
  std::vector<LayerAttention> layers;  // one for each layer
};

}  // namespace stw
