#include "src/weights/stray_tensors.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "src/models/file_names.h"
#include "src/weights/nf4_weights.h"

namespace stw {
namespace {

// "model.layers.3." for a tensor of that block; empty outside of blocks.
std::string_view block_of(std::string_view name) {
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    const size_t end = name.find_first_not_of("0123456789", dot + 1);
    if (end != name.npos && end > dot + 1 && name[end] == '.') return name.substr(0, end + 1);
  }
  return {};
}

// Whether no model computes with the tensor, although older files have it.
bool is_unused(std::string_view name) {
  // The last one: published files of DeBERTa have the table although their position_biased_input is false,
  // and transformers leaves it out too. ".attn.bias" and ".attn.masked_bias" are GPT-2's.
  constexpr std::string_view endings[] = {".inv_freq", ".attn.bias", ".attn.masked_bias",
                                          "embeddings.position_embeddings.weight"};
  return std::any_of(std::begin(endings), std::end(endings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

// "bert.pooler.dense" for "bert.pooler.dense.weight"
std::string_view module_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

// "bert.pooler." for "bert.pooler.dense"; empty for a module that is in none.
std::string_view parent_of(std::string_view module) { return module.substr(0, module.rfind('.') + 1); }

// "model.layers." and 3 for "model.layers.3."
std::pair<std::string_view, uint64_t> numbered(std::string_view block) {
  const size_t digits = block.find_last_not_of("0123456789", block.size() - 2) + 1;
  uint64_t number = 0;
  std::from_chars(block.data() + digits, block.data() + block.size() - 1, number);
  return {block.substr(0, digits), number};
}

using Names = std::set<std::string, std::less<>>;

// The model's tensors, their modules and its blocks, by their names in files.
struct Described {
  Names tensors, modules, blocks;
  Names places;  // modules around those of the body: "bert.embeddings.", "bert.encoder."
};

Described describe(const SafetensorsReader& files, const std::set<const SafetensorsInfo*>& used,
                   const Graph& graph, const ModelConfig& config, bool has_new_logits) {
  Described d;
  for (const Tensor& t : graph.tensors) {
    if (t.role != Role::parameter || (has_new_logits && gives_label_logits(config, t.name))) continue;
    for (const std::string& name : names_in_files(config, t.name)) {
      const std::string_view block = block_of(name);
      d.tensors.insert(name);
      if (!block.empty()) d.blocks.emplace(block);
      else d.modules.emplace(module_of(name));
      if (is_of_head(config, t.name) || used.count(files.find(name)) == 0) continue;
      d.places.emplace(block.empty() ? parent_of(module_of(name))
                                     : parent_of(module_of(numbered(block).first)));
    }
  }
  d.places.erase("");  // heads are there, too
  return d;
}

// Whether the tensor is next to tensors of the body. A decoder's files may have parts for images there, which
// are modules of modules.
bool is_in_place(std::string_view name, const Described& d, bool is_encoder) {
  return std::any_of(d.places.begin(), d.places.end(), [&](const std::string& place) {
    if (!name.starts_with(place)) return false;
    const auto dots = std::count(name.begin() + static_cast<std::ptrdiff_t>(place.size()), name.end(), '.');
    return is_encoder ? dots > 0 : dots == 1;
  });
}

struct Setting {
  std::string_view part, family, key;  // part of a tensor's name; family: empty for all
};
constexpr Setting settings[] = {
    {"token_type_embeddings.", "", "type_vocab_size"},
    {"embeddings_project.", "", "embedding_size"},
    {"embedding_hidden_mapping_in.", "", "embedding_size"},
    {"embeddings.embed_proj.", "", "embedding_size"},
    {"crossattention.", "", "add_cross_attention"},
    {"encoder.LayerNorm.", "deberta-v2", "norm_rel_ebd"},
    {"rel_embeddings.", "deberta-v2", "relative_attention"},
    {"encoder.conv.", "deberta-v2", "conv_kernel_size"},
    {"pos_key_proj.", "deberta-v2", "pos_att_type or share_att_key"},
    {"pos_query_proj.", "deberta-v2", "pos_att_type or share_att_key"},
    {"_proj.bias", "llama", "attention_bias or mlp_bias"},
    {"norm.bias", "modernbert", "norm_bias"},
    {"attn.W", "modernbert", "attention_bias"},
    {"mlp.W", "modernbert", "mlp_bias"},
    {"head.dense.bias", "modernbert", "classifier_bias"},
    {"decoder.bias", "modernbert", "decoder_bias"},
};

}  // namespace

std::string setting_of(std::string_view tensor, const ModelConfig& config) {
  const auto* const found = std::find_if(std::begin(settings), std::end(settings), [&](const Setting& one) {
    return tensor.find(one.part) != tensor.npos &&
           (one.family.empty() || one.family == architecture_of(config).model_type);
  });
  return found == std::end(settings) ? std::string() : std::string(found->key);
}

int64_t layers_in(const SafetensorsReader& files, const Graph& graph, const ModelConfig& config) {
  std::set<std::string, std::less<>> places;  // where the model has blocks: "model.layers."
  for (const Tensor& t : graph.tensors)
    if (t.role == Role::parameter)
      for (const std::string& name : names_in_files(config, t.name))
        if (const std::string_view block = block_of(name); !block.empty())
          places.emplace(numbered(block).first);
  int64_t layers = 0;
  for (const SafetensorsInfo& t : files.tensors())
    if (const std::string_view block = block_of(t.name); !block.empty())
      if (const auto [place, number] = numbered(block); number < INT32_MAX && places.count(place) > 0)
        layers = std::max(layers, static_cast<int64_t>(number) + 1);
  return layers;
}

const SafetensorsInfo* find_stray(const SafetensorsReader& files,
                                  const std::set<const SafetensorsInfo*>& used, const Graph& graph,
                                  const ModelConfig& config, bool has_new_logits) {
  const Described described = describe(files, used, graph, config, has_new_logits);
  const bool is_encoder = architecture_of(config).is_encoder;
  const auto is_stray = [&](const SafetensorsInfo& t) {
    if (used.count(&t) || is_unused(t.name)) return false;
    if (const std::string_view block = block_of(t.name); !block.empty()) {
      if (described.blocks.count(block) == 0) return false;
    } else if (described.tensors.count(t.name) > 0 || (described.modules.count(module_of(t.name)) == 0 &&
                                                       !is_in_place(t.name, described, is_encoder))) {
      return false;
    }
    const SafetensorsInfo* const weight = files.find(Nf4Weight::weight_of(t.name));
    return !weight || !used.count(weight) || !Nf4Weight::is_one(files, *weight);
  };
  const auto found = std::find_if(files.tensors().begin(), files.tensors().end(), is_stray);
  return found == files.tensors().end() ? nullptr : &*found;
}

}  // namespace stw
