// Fuzzes config.json. An accepted config gives a graph, with and without adapters, and writing and reading it
// gives the same graph. For models with few layers of any size, plans are made that the verifier accepts and
// that are read back.
#include "input.h"
#include "planner/plan/plan_file.h"
#include "src/models/decoder/decoder.h"
#include "src/trainer/planned.h"

using namespace stw;

namespace {

void make_graphs(const ModelConfig& config) {
  const int64_t sequence = std::min<int64_t>(config.positions, 16);
  const std::string described = describe(build_model(config, sequence, {}));
  const auto again = parse_model(to_string(config.json, 2), "again");
  fuzz::require(bool(again), "a config that is written is read");
  fuzz::require(describe(build_model(*again, sequence, {})) == described,
                "a config that is written makes the same graph");
  if (architecture_of(config).is_encoder) return;  // it does not take adapters
  ModelConfig adapted = config;
  adapted.adapters.rank = 4;
  adapted.adapters.alpha = 8;
  adapted.adapters.targets = {all_targets};
  fuzz::require(bool(build_forward(adapted, sequence, Format::f32, {})), "all matrices take adapters");
}

void make_plan(const std::string& text, int64_t positions) {
  ModelSource source;
  source.config_json = text;
  const auto model = Model::open(source);
  if (!model) return;
  Request request;
  request.memory_bytes = uint64_t{1} << 60;
  request.global_batch = 3;
  request.sequence = std::min<int64_t>(positions, 16);
  request.threads = 2;
  const auto planned = Planned::make(**model, request);
  if (!planned || !(*planned)->plan.fits) return;
  fuzz::require(bool((*planned)->verify()), "the judge takes a plan that was made");
  fuzz::require(bool(Planned::load(**model, (*planned)->json)), "a plan that is written is taken");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto config = parse_model(text, "config.json");
  if (!config || config->layers > 8) return 0;  // deeper models take longer and are built in the same way
  // An encoder without a head has no graph to train.
  if (architecture_of(*config).is_encoder && config->task == Task::language_model)
    fuzz::require(bool(set_labels(*config, Task::label, {"a", "b"})), "an encoder takes labels");
  make_graphs(*config);
  // The search tries all save-sets of a block; blocks with four norms have too many.
  const auto* const decoder = std::any_cast<DecoderConfig>(&config->family);
  if (config->layers <= 3 && !(decoder && decoder->norms_after)) make_plan(text, config->positions);
  return 0;
}
