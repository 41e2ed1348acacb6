// Fuzzes model folders. An input is a config.json, then the header of the weights and, for an adapter, its
// adapter_config.json and its header, separated by bytes 0xFF. All numbers are zeros. Every parameter of a
// model that opens can be read.
#include <algorithm>

#include "input.h"
#include "src/weights/model.h"
#include "weights.h"

namespace {

void read_all(const stw::Model& model) {
  for (const int p : model.parameters()) {
    const stw::Tensor& parameter = model.graph().at(p);
    const auto count = std::min<uint64_t>(parameter.shape.elements(), 4096);
    std::vector<float> values(count);
    if (model.holds_codes(parameter)) {
      std::vector<uint8_t> codes(count);
      std::vector<float> scales(count);
      fuzz::require(bool(model.read_codes(parameter, 0, count, codes.data(), scales.data())),
                    "codes can be read");
    }
    fuzz::require(bool(model.read(parameter, 0, count, values.data())), "a parameter can be read");
    fuzz::require(bool(model.read(parameter, parameter.shape.elements() - count, count, values.data())),
                  "a parameter can be read to its end");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder base, adapter;
  const auto parts = fuzz::parts_of(data, size, 4);
  base.write("config.json", parts[0]);
  base.write("model.safetensors", fuzz::weights_of(parts[1]));
  stw::ModelSource source;
  source.source = base.path();
  if (const auto config = stw::parse_model(parts[0], "config.json"); !config || config->layers > 8) return 0;
  if (const auto model = stw::Model::open(source)) read_all(**model);
  if (parts[2].empty()) return 0;
  adapter.write("adapter_config.json", parts[2]);
  adapter.write("adapter_model.safetensors", fuzz::weights_of(parts[3]));
  source.adapter = adapter.path();
  if (const auto model = stw::Model::open(source)) read_all(**model);
  return 0;
}
