// Fuzzes checkpoints. An input changes the fields of a checkpoint that a trainer wrote (changes.h); the
// hashes are recomputed. Whether the checkpoint is accepted or not, the trainer then takes a step and writes
// another one, from which a new trainer continues with the same bits.
#include <bit>
#include <utility>

#include "changes.h"
#include "input.h"
#include "model.h"
#include "src/trainer/trainer.h"
#include "tests/small_configs.h"
#include "tests/src/files/forged_checkpoint.h"

namespace {

using namespace stw;

struct Setting {
  std::unique_ptr<Device> device;
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Planned> planned;
  Dataset dataset;

  std::unique_ptr<Trainer> trainer() const {
    return std::move(*Trainer::create(*device, model, planned, {}));
  }
  // Trains on that many more batches. Returns whether it succeeded.
  bool train(Trainer& trainer, uint64_t batches) const {
    Schedule schedule;
    schedule.rate = 1e-3;
    const uint64_t until = trainer.progress().batches + batches;
    return bool(
        trainer.run(dataset, 1, until, schedule, [](const StepResult&, const Progress&) { return true; }));
  }
};

Setting make_setting(const fuzz::Folder& folder) {
  DeviceOptions device_options;
  device_options.threads = 1;
  auto model = fuzz::model_of(testing_tools::small_gpt2());
  Request request;
  request.memory_bytes = uint64_t{1} << 30;
  request.global_batch = 2;
  request.sequence = 8;
  request.threads = 1;
  request.precision = Precision::fp16;  // its loss scale is part of the checkpoint
  DatasetOptions data;
  data.path = folder.write("tokens", std::string(400, '\3'));
  data.vocabulary = testing_tools::small_vocabulary;
  data.format = TokenFormat::bytes;
  return {std::move(*Device::open(device_options)), model, *Planned::make(*model, request),
          std::move(*Dataset::open(data))};
}

// Copies a checkpoint with changed fields.
Status rewrite(const std::string& from, const Json& changes, const std::string& to) {
  STW_ASSIGN(reader, CheckpointReader::open(from));
  return testing_tools::write_with_fields(reader, fuzz::changed(reader.fields(), changes), to);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  static const Setting setting = make_setting(folder);
  static const std::unique_ptr<Trainer> trainer = setting.trainer(), other = setting.trainer();
  static const std::string path = folder.path() + "/checkpoint", changed = folder.path() + "/changed",
                           next = folder.path() + "/next";
  if (static bool is_new = true; std::exchange(is_new, false))
    fuzz::require(setting.train(*trainer, 2) && bool(trainer->save(path)), "a checkpoint is written");
  const auto changes = parse_json({reinterpret_cast<const char*>(data), size});
  if (!changes || !changes->is_object()) return 0;
  fuzz::require(bool(rewrite(path, *changes, changed)), "a checkpoint is written with other fields");
  if (!trainer->restore(changed)) {
    fuzz::require(bool(trainer->restore(path)), "what was refused is forgotten");
    return 0;
  }
  const bool went_well = setting.train(*trainer, 1);
  fuzz::require(bool(trainer->save(next)) && bool(other->restore(next)),
                "a checkpoint that was taken is written again");
  fuzz::require(setting.train(*other, 1) == setting.train(*trainer, 1) || !went_well, "a run goes on alike");
  const auto bits_of = [](const Trainer& t) { return std::bit_cast<uint64_t>(t.progress().loss); };
  fuzz::require(bits_of(*trainer) == bits_of(*other) || !went_well, "a run goes on to the same bits");
  return 0;
}
