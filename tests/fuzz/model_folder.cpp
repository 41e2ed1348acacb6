// Fuzzes folders of models. An input is a config.json, behind a byte 0xFF the header of its weights, and of an adapter its adapter_config.json and its header;
// all numbers are zeros. A model that opens reads every parameter.
#include <algorithm>
#include <cstring>

#include "input.h"
#include "planner/json.h"
#include "src/model.h"

namespace {

constexpr uint64_t most_bytes = 1 << 20;   // of a file

// The file of a header that says where its data ends.
std::string weights_of(const std::string& header) {
  uint64_t end = 0;
  if (const auto json = stw::parse_json(header))
    for (const auto& [name, tensor] : json->members())
      if (const auto offsets = stw::get_array(tensor, "data_offsets"); offsets && (*offsets)->elements().size() == 2)
        if (const int64_t* const last = (*offsets)->elements()[1].as_int(); last && *last > 0) end = std::max(end, static_cast<uint64_t>(*last));
  std::string file(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  return (file + header).append(std::min(end, most_bytes), '\0');
}

void read_all(const stw::Model& model) {
  for (const int p : model.parameters()) {
    const stw::Tensor& parameter = model.graph().at(p);
    const auto count = std::min<uint64_t>(parameter.shape.elements(), 4096);
    std::vector<float> values(count);
    if (model.holds_codes(parameter)) {
      std::vector<uint8_t> codes(count);
      std::vector<float> scales(count);
      fuzz::require(bool(model.read_codes(parameter, 0, count, codes.data(), scales.data())), "codes can be read");
    }
    fuzz::require(bool(model.read(parameter, 0, count, values.data())), "a parameter can be read");
    fuzz::require(bool(model.read(parameter, parameter.shape.elements() - count, count, values.data())), "a parameter can be read to its end");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder base, adapter;
  const auto parts = fuzz::parts_of(data, size, 4);
  base.write("config.json", parts[0]);
  base.write("model.safetensors", weights_of(parts[1]));
  stw::ModelSource source;
  source.source = base.path();
  if (const auto config = stw::parse_model(parts[0], "config.json"); !config || config->layers > 8) return 0;
  if (const auto model = stw::Model::open(source)) read_all(**model);
  if (parts[2].empty()) return 0;
  adapter.write("adapter_config.json", parts[2]);
  adapter.write("adapter_model.safetensors", weights_of(parts[3]));
  source.adapter = adapter.path();
  if (const auto model = stw::Model::open(source)) read_all(**model);
  return 0;
}
