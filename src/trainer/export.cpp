// Export writes folders that other libraries read: a trained model, or its adapters alone. The adapters'
// folder has no config.json, because transformers would take it for a whole model.
#include <utility>
#include <vector>

#include "kernels/contract/sizes.h"
#include "src/trainer/export.h"
#include "src/weights/adapter_files.h"

namespace stw {

namespace {

Status write_parameters(TrainerCore& core, const std::string& path,
                        const std::vector<std::pair<int, std::string>>& named) {
  constexpr TensorDType types[precision_count] = {TensorDType::f32, TensorDType::bf16, TensorDType::f16};
  std::vector<SafetensorsEntry> entries;
  for (const auto& [t, name] : named) {
    const Shape& s = core.graph().at(t).shape;
    entries.push_back({name,
                       types[static_cast<size_t>(core.plan().numerics.precision)],
                       {s.dims.begin(), s.dims.begin() + s.rank}});
  }
  STW_ASSIGN(writer, SafetensorsWriter::create(path, entries, {{"format", "pt"}}));
  for (const auto& [t, name] : named) {
    const Tensor& p = core.graph().at(t);
    const uint64_t count = p.shape.elements(), size = element_bytes(p.format);
    for (uint64_t done = 0; done < count;) {  // in the order of rows in the file
      const WeightLayout::Run run = p.layout.in_graph(done, count - done, count);
      STW_TRY(core.read_memory(core.execution.address(t) + run.at * size, run.count * size,
                               [&](std::span<const std::byte> piece) { return writer.write(piece); }));
      done += run.count;
    }
  }
  return writer.finish();
}

// The parameters to write, each once for each of its names in files.
std::vector<std::pair<int, std::string>> named_parameters(TrainerCore& core) {
  const ModelConfig& config = core.model->config();
  std::vector<std::pair<int, std::string>> named;
  for (int t : core.model->parameters()) {
    const Tensor& p = core.graph().at(t);
    if (!core.graph().has_adapters())
      for (const std::string& name : core.model->names_in_folder(p.name)) named.emplace_back(t, name);
    else if (p.of_adapters) named.emplace_back(t, adapter_tensor_name(config, p.name));
  }
  return named;
}

Status export_adapters(TrainerCore& core, const std::string& folder) {
  STW_TRY(write_parameters(core, adapter_weights(folder), named_parameters(core)));
  if (core.graph().head.labels() > 0 && core.graph().head.task != Task::spans) {
    STW_TRY(write_text(
        adapter_labels(folder),
        to_string(adapter_labels_json(core.model->config().task, core.model->config().labels), 2) + "\n"));
  }
  return write_text(
      adapter_config(folder),
      to_string(adapter_config_json(core.graph(), core.model->config(), core.model->base()), 2) + "\n");
}

Status export_weights(TrainerCore& core, const std::string& folder) {
  STW_TRY(write_parameters(core, folder + "/model.safetensors", named_parameters(core)));
  // Readers round weights to the dtype in the config. There, it is still the dtype of the original model.
  constexpr const char* names[precision_count] = {"float32", "bfloat16", "float16"};
  Json config = core.model->config().json;
  for (const char* key : {"dtype", "torch_dtype"})
    if (config.find(key)) config.set(key, names[static_cast<size_t>(core.plan().numerics.precision)]);
  return write_text(folder + "/config.json", config_text(config));
}

}  // namespace

Status export_model(TrainerCore& core, const std::string& folder) {
  STW_TRY(core.check_ready());
  STW_TRY(make_directories(folder));
  const Computing writing(core);  // a watch's callback must not change the tensors while they are written
  const InPhase phase(core.progress, TrainerPhase::save);
  uint64_t bytes = 0;
  for (const auto& [t, name] : named_parameters(core)) bytes = size_add(bytes, core.graph().at(t).bytes(1));
  return core.watched(
      Work::export_model, WorkUnit::bytes, bytes,
      [&] {
        return core.graph().has_adapters() ? export_adapters(core, folder) : export_weights(core, folder);
      },
      EarlierCancel::waits);
}

}  // namespace stw
