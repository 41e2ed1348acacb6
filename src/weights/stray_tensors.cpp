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

bool is_constant(std::string_view name) {
  // The last two are GPT-2's.
  constexpr std::string_view constants[] = {".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias"};
  return std::any_of(std::begin(constants), std::end(constants),
                     [&](std::string_view suffix) { return name.ends_with(suffix); });
}

// "model.layers." and 3 for "model.layers.3."
std::pair<std::string_view, uint64_t> numbered(std::string_view block) {
  const size_t digits = block.find_last_not_of("0123456789", block.size() - 2) + 1;
  uint64_t number = 0;
  std::from_chars(block.data() + digits, block.data() + block.size() - 1, number);
  return {block.substr(0, digits), number};
}

}  // namespace

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
                                  const ModelConfig& config) {
  std::set<std::string, std::less<>> blocks;  // the model's blocks, by their names in files
  for (const Tensor& t : graph.tensors)
    if (t.role == Role::parameter)
      for (const std::string& name : names_in_files(config, t.name))
        if (const std::string_view block = block_of(name); !block.empty()) blocks.emplace(block);
  const auto is_stray = [&](const SafetensorsInfo& t) {
    if (used.count(&t) || is_constant(t.name) || blocks.count(block_of(t.name)) == 0) return false;
    const SafetensorsInfo* const weight = files.find(Nf4Weight::weight_of(t.name));
    return !weight || !used.count(weight) || !Nf4Weight::is_one(files, *weight);
  };
  const auto found = std::find_if(files.tensors().begin(), files.tensors().end(), is_stray);
  return found == files.tensors().end() ? nullptr : &*found;
}

}  // namespace stw
