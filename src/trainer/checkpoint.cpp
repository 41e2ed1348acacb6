// Checkpoints hold everything that decides the next step.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/common/quantile_map.h"
#include "planner/base/check_in.h"
#include "planner/plan/numerics_file.h"
#include "planner/plan/plan_file.h"
#include "src/base/hash.h"
#include "src/files/checkpoint_file.h"
#include "src/trainer/checkpoint.h"

namespace stw {

namespace {

constexpr uint64_t staging_bytes = 1 << 20;

std::string model_hash(const Graph& graph) {
  const std::string text = describe(graph);
  return hexadecimal(hash64(text.data(), text.size()));
}

// The tensors in a checkpoint: parameters, master weights and optimizer states. Frozen parameters are
// included, except the base weights of adapters. These may be many times as large as the rest, and the
// model's files have them.
std::vector<int> state_tensors(const Graph& graph) {
  std::vector<int> list;
  const bool has_adapters = graph.has_adapters();
  for (int t = 0; t < static_cast<int>(graph.tensors.size()); ++t) {
    const Role role = graph.at(t).role;
    if ((graph.owns_bytes(t) && (!has_adapters || graph.at(t).of_adapters)) || role == Role::master ||
        role == Role::optimizer)
      list.push_back(t);
  }
  return list;
}

// A hash of each parameter's update rule and states, and of the meaning of 8-bit codes.
std::string state_format(const Graph& graph) {
  std::map<int, std::string> lines;  // by parameter, whatever the order of the updates
  bool has_codes = false;
  for (const Op& op : graph.update_ops) {
    if (!is_update(op.kind)) continue;
    lines[op.outputs[0]] = graph.at(op.outputs[0]).name + ' ' + op_row(op.kind).name + '\n';
    for (size_t k = 2; k < op.outputs.size(); ++k)
      has_codes |= op.outputs[k] >= 0 && graph.at(op.outputs[k]).format == Format::u8;
  }
  std::string text;
  for (const auto& [parameter, line] : lines) text += line;
  std::string name = hexadecimal(hash64(text.data(), text.size()));
  if (has_codes)
    for (const kernels::QuantileMap* map : {&kernels::signed_quantiles, &kernels::unsigned_quantiles})
      name += ", map " + hexadecimal(hash64(map->value, sizeof map->value));
  return name;
}

Json adapters_json(const Adapters& a) {
  Json targets = Json::array();
  for (const std::string& target : a.targets) targets.push(target);
  return Json::object()
      .set("rank", a.rank)
      .set("alpha", a.alpha)
      .set("rank_stabilised", a.rank_stabilised)
      .set("dropout", a.dropout)
      .set("targets", targets);
}

// The fields that must agree before a checkpoint may be restored. `base`: a hash of the base weights of
// adapters; empty without adapters.
Json identity(const TrainerCore& trainer, const std::string& base) {
  const Numerics& n = trainer.plan().numerics;
  Json fields = Json::object().set("architecture", trainer.graph().architecture);
  set_identity(fields, n, NumericsPart::of_graph);
  if (trainer.graph().has_adapters()) fields.set("adapters", adapters_json(trainer.model->config().adapters));
  fields.set("model", model_hash(trainer.graph()));
  set_identity(fields, n, NumericsPart::other);
  fields.set("state_format", state_format(trainer.graph()));
  if (!base.empty()) fields.set("base", base);
  // In fast mode the trained bits depend on the micro-batch.
  if (!n.exact) fields.set("micro_batch", trainer.plan().decisions.micro_batch);
  return fields;
}

// Explains a field whose value is only a hash.
std::string meaning_of(const std::string& key) {
  if (key == "model") return " (hashes of its layers, sizes, dropout and what is trained)";
  if (key == "base") return " (hashes of the weights below the adapters)";
  if (key == "state_format") return " (hashes of which optimizer states each parameter has)";
  return "";
}

// Calls fn(name, field) for each number that a step hands on to the next.
template <class State, class Fn>
void for_each_carried(State& c, const Fn& fn) {
  fn("loss_scale", c.loss_scale);
  fn("good_steps", c.good_steps);
  fn("observed", c.observed);
  fn("loss_mean", c.loss_mean);
  fn("loss_variance", c.loss_variance);
  fn("norm_mean", c.norm_mean);
  fn("norm_variance", c.norm_variance);
}

// A loss that is not finite stands in the file as null.
Result<double> get_loss(const Json& fields, const char* key) {
  const Json* value = fields.find(key);
  if (value && value->is_null()) return std::numeric_limits<double>::quiet_NaN();
  return get_double(fields, key, 0.0);
}

Json carried_json(const CarriedState& carried) {
  Json object = Json::object();
  for_each_carried(carried, [&](const char* name, const auto& field) { object.set(name, field); });
  return object;
}

Status read_carried(const Json& object, CarriedState& carried) {
  Status status = ok();
  for_each_carried(carried, [&](const char* name, auto& field) {
    if (!status) return;
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, double>) {
      auto value = get_double(object, name);
      if (value) field = *value;
      else status = std::move(value.error());
    } else {
      auto value = get_uint(object, name);
      if (value) field = *value;
      else status = std::move(value.error());
    }
  });
  return status;
}

// Errors: bad_state; its message names the first field that differs.
Status check_identity(const std::string& path, const Json& found, const Json& expected) {
  const Json before = identity_of_older_files();
  if (const Json* other = found.find("adapters"); other && !expected.find("adapters"))
    return Error{Code::bad_state, path + ": adapters: expected none, found " + to_string(*other, 0)};
  for (const auto& [key, value] : expected.members()) {
    const Json* other = found.find(key);
    const Json* meant = other ? other : before.find(key);
    if (!meant || !(*meant == value))
      return Error{Code::bad_state, path + ": " + key + ": expected " + to_string(value, 0) + ", found " +
                                        (other ? to_string(*other, 0) : "nothing") + meaning_of(key)};
  }
  return ok();
}

// The contents of a checkpoint, except its tensors.
struct SavedRun {
  Progress progress;
  CarriedState carried;
  uint64_t seed = 0;
};

// Refuses values that no run can have. Training would turn them into NaN, or would write a checkpoint that
// cannot be read.
Status check_saved_run(const std::string& path, const SavedRun& s, bool is_fp16) {
  const auto nonsense = [&](const std::string& what) { return corrupt(path, what); };
  const Progress& p = s.progress;
  const CarriedState& c = s.carried;
  // Limit of means and variances: far above any fp32 number and its square.
  constexpr double largest = 1e100;
  int exponent = 0;
  if (p.batches > INT64_MAX || p.step > p.batches || p.skipped != p.batches - p.step)
    return nonsense("of " + std::to_string(p.batches) + " batches " + std::to_string(p.step) +
                    " were steps and " + std::to_string(p.skipped) + " were skipped");
  if (!(c.loss_scale >= 1 && c.loss_scale <= std::numeric_limits<float>::max()) ||
      std::frexp(c.loss_scale, &exponent) != 0.5 || (!is_fp16 && c.loss_scale != 1))
    return nonsense("its loss scale is " + to_string(Json(c.loss_scale), 0));
  for (const double mean : {c.loss_mean, c.norm_mean})
    if (!(std::abs(mean) <= largest)) return nonsense("its mean loss or norm is " + to_string(Json(mean), 0));
  for (const double variance : {c.loss_variance, c.norm_variance})
    if (!(variance >= 0 && variance <= largest))
      return nonsense("the variance of its loss or norm is " + to_string(Json(variance), 0));
  return ok();
}

Result<SavedRun> read_saved_run(const std::string& path, const Json& fields, uint64_t global_batch,
                                bool is_fp16) {
  SavedRun s;
  Progress& p = s.progress;
  for (const auto& [key, field] : {std::pair{"step", &p.step},
                                   {"batches", &p.batches},
                                   {"skipped", &p.skipped},
                                   {"tokens", &p.tokens}}) {
    STW_ASSIGN(value, get_uint(fields, key));
    *field = value;
  }
  // Older checkpoints lack "samples".
  STW_ASSIGN(samples, get_uint(fields, "samples", size_mul(p.batches, global_batch)));
  STW_ASSIGN(loss, get_loss(fields, "loss"));
  STW_ASSIGN(evaluation, get_loss(fields, "evaluation_loss"));
  STW_ASSIGN(seed, get_uint(fields, "seed"));
  STW_ASSIGN(carried_fields, get_object(fields, "carried"));
  STW_TRY(read_carried(*carried_fields, s.carried));
  STW_TRY(check_saved_run(path, s, is_fp16));
  p.samples = samples;
  p.loss = loss;
  p.evaluation_loss = evaluation;
  p.loss_scale = s.carried.loss_scale;
  s.seed = seed;
  return s;
}

struct SavedTensor {
  int tensor;
  CheckpointSectionReader section;
};

Result<std::vector<SavedTensor>> saved_tensors(const CheckpointReader& reader, const Graph& graph) {
  std::vector<SavedTensor> saved;
  for (int t : state_tensors(graph)) {
    STW_ASSIGN(section, reader.section(graph.at(t).name, graph.at(t).bytes(1)));
    saved.push_back({t, std::move(section)});
  }
  return saved;
}

Status overwrite(std::vector<SavedTensor>& saved, const Execution& execution, Stream& stream) {
  std::vector<std::byte> staging;
  for (auto& [tensor, section] : saved) {
    std::byte* to = execution.address(tensor);
    while (section.remaining() > 0) {
      const size_t n = static_cast<size_t>(std::min(section.remaining(), staging_bytes));
      if (std::byte* there = stream.on_host(to)) {
        STW_TRY(section.read({there, n}));
      } else {
        staging.resize(n);
        STW_TRY(section.read({staging.data(), n}));
        stream.upload(to, staging.data(), n);
      }
      to += n;
    }
  }
  return stream.wait();
}

Result<std::string> hash_of_base(TrainerCore& core) {
  if (!core.graph().has_adapters()) return std::string();
  Hash64 hash;
  for (int t : core.model->parameters())
    if (!core.graph().at(t).of_adapters)
      STW_TRY(core.read_memory(core.execution.address(t), core.graph().at(t).bytes(1),
                               [&](std::span<const std::byte> piece) {
                                 hash.update(piece.data(), piece.size());
                                 return ok();
                               }));
  return hexadecimal(hash.digest());
}

// Includes the base weights of adapters, which are hashed and not saved.
uint64_t saved_bytes(const TrainerCore& core) {
  uint64_t bytes = 0;
  for (const int t : state_tensors(core.graph())) bytes = size_add(bytes, core.graph().at(t).bytes(1));
  for (const int t : core.model->parameters())
    if (core.graph().has_adapters() && !core.graph().at(t).of_adapters)
      bytes = size_add(bytes, core.graph().at(t).bytes(1));
  return bytes;
}

Status write_checkpoint(TrainerCore& core, const std::string& path) {
  const Computing writing(core);  // a watch's callback must not change the tensors while they are written
  const InPhase phase(core.progress, TrainerPhase::save);
  STW_ASSIGN(base, hash_of_base(core));
  Json fields = Json::object().set("format", "stowage-checkpoint").set("identity", identity(core, base));
  const Progress p = core.progress.read();
  fields.set("step", p.step)
      .set("batches", p.batches)
      .set("samples", p.samples)
      .set("skipped", p.skipped)
      .set("tokens", p.tokens);
  fields.set("loss", p.loss).set("evaluation_loss", p.evaluation_loss).set("seed", core.options.seed);
  fields.set("carried", carried_json(core.carried));
  std::vector<CheckpointSection> sections;
  const std::vector<int> tensors = state_tensors(core.graph());
  for (int t : tensors) sections.push_back({core.graph().at(t).name, core.graph().at(t).bytes(1)});
  STW_ASSIGN(writer, CheckpointWriter::create(path, fields, std::move(sections)));
  for (int t : tensors)
    STW_TRY(core.read_memory(core.execution.address(t), core.graph().at(t).bytes(1),
                             [&](std::span<const std::byte> piece) { return writer.write(piece); }));
  return writer.finish();
}

Status read_checkpoint(TrainerCore& core, const std::string& path) {
  const Computing reading(core);
  STW_ASSIGN(reader, CheckpointReader::open(path));
  STW_ASSIGN(found, get_object(reader.fields(), "identity"));
  if (core.condition == Condition::arena_lost) STW_TRY(core.reallocate());
  STW_ASSIGN(base, hash_of_base(core));
  STW_TRY(check_identity(path, *found, identity(core, base)));
  STW_ASSIGN(saved, read_saved_run(path, reader.fields(), core.global_batch(),
                                   core.plan().numerics.precision == Precision::fp16));
  // Restore may be called from the callback of a run, whose phase continues.
  saved.progress.phase = core.progress.read().phase;
  // The rest of the file is checked, and all memory is allocated, before the first byte of the trainer
  // changes.
  STW_ASSIGN(tensors, saved_tensors(reader, core.graph()));
  STW_TRY(reader.verify_all());
  supervisor->commit();
  core.condition = Condition::broken;  // until the last byte is written
  core.is_untouched = false;
  STW_TRY(overwrite(tensors, core.execution, *core.stream));
  core.condition = Condition::ready;
  core.options.seed = saved.seed;
  core.carried = saved.carried;
  core.progress.replace(saved.progress);
  return ok();
}

}  // namespace

Status save_checkpoint(TrainerCore& core, const std::string& path) {
  STW_TRY(core.check_ready());
  return core.watched(
      Work::save, WorkUnit::bytes, saved_bytes(core), [&] { return write_checkpoint(core, path); },
      EarlierCancel::waits);
}

Status restore_checkpoint(TrainerCore& core, const std::string& path) {
  STW_TRY(core.check_free());
  return core.watched(
      Work::restore, WorkUnit::bytes, saved_bytes(core), [&] { return read_checkpoint(core, path); },
      EarlierCancel::waits);
}

}  // namespace stw
