// Shared by tests of the trainer: devices, models and plans in one line each, and readers of a step's
// results.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "planner/graph/kept_rows.h"
#include "src/trainer/trainer.h"
#include "tests/small_configs.h"
#if defined(STW_GPU)
#include <cuda_runtime_api.h>
#endif

namespace stw::testing_tools {

// Devices live as long as the process, as trainers borrow them. Null where the processor lacks the
// instruction set.
inline const Device* device_with(kernels::Isa isa) {
  static std::map<kernels::Isa, std::unique_ptr<Device>> devices;
  auto [entry, is_new] = devices.try_emplace(isa);
  if (is_new) {
    DeviceOptions options;
    options.threads = 4;
    options.choose_isa = false;
    options.isa = isa;
    auto device = Device::open(options);
    if (device) entry->second = std::move(*device);
  }
  return entry->second.get();
}
inline const Device& best_device() { return *device_with(kernels::best_isa()); }

inline std::shared_ptr<const Model> open_model(const ModelSource& source) {
  auto model = Model::open(source);
  if (!model) {
    ADD_FAILURE() << model.error().message;
    return nullptr;
  }
  return *model;
}

inline std::shared_ptr<const Model> model_of(const SmallModel& model, uint64_t seed = 7) {
  ModelSource source;
  source.config_json = model.config;
  source.adapters = model.adapters;
  source.seed = seed;
  return open_model(source);
}

inline Request request_for(int64_t global_batch, int64_t sequence, int threads = 1) {
  Request request;
  request.memory_bytes = uint64_t{1} << 30;
  request.global_batch = global_batch;
  request.sequence = sequence;
  request.threads = threads;
  request.state_bits = 32;
  return request;
}

inline std::shared_ptr<const Planned> plan_for(const Model& model, const Request& request) {
  auto planned = Planned::make(model, request);
  if (!planned) {
    ADD_FAILURE() << planned.error().message;
    return nullptr;
  }
  EXPECT_TRUE((*planned)->plan.fits);
  return *planned;
}

// A plan with these decisions in place of the search's.
inline std::shared_ptr<const Planned> plan_with(const Model& model, const Request& request,
                                                const Decisions& decisions) {
  auto planned = std::make_shared<Planned>(*plan_for(model, request));
  planned->plan.decisions = decisions;
  if (planned->with_table_gradient) planned->graph = *std::exchange(planned->with_table_gradient, {});
  if (decisions.keeps_rows) keep_rows(planned->graph, request.global_batch);
  planned->programs = make_programs(planned->graph, decisions, request.global_batch,
                                    planned->plan.request.threads, find_device(request.device)->alignment);
  planned->plan.bytes.arena = planned->programs.arena_bytes;
  planned->plan.bytes.host = planned->programs.arena.host_bytes;
  auto status = planned->verify();
  EXPECT_TRUE(status) << status.error().message;
  return planned;
}

inline std::unique_ptr<Trainer> trainer_for(std::shared_ptr<const Model> model,
                                            std::shared_ptr<const Planned> planned,
                                            const TrainerOptions& options = {},
                                            const Device& device = best_device()) {
  auto trainer = Trainer::create(device, std::move(model), std::move(planned), options);
  if (!trainer) {
    ADD_FAILURE() << trainer.error().message;
    return nullptr;
  }
  return std::move(*trainer);
}

// Destinations of a sample's inputs in the memory of a test.
template <class T>
SampleInput input_at(T* numbers, int64_t rows, int64_t width = 1) {
  return {reinterpret_cast<std::byte*>(numbers), std::is_same_v<T, float> ? Format::f32 : Format::i32, rows,
          width};
}
inline SampleRows rows_of(int64_t sequence, int32_t* tokens, int32_t* targets, int32_t* positions = nullptr,
                          float* reference = nullptr) {
  SampleRows rows;
  rows[Input::tokens] = input_at(tokens, sequence);
  rows[Input::targets] = input_at(targets, sequence);
  rows[Input::positions] = input_at(positions, sequence);
  rows[Input::reference] = input_at(reference, sequence);
  return rows;
}

// Tokens and targets (samples, sequence) of a global batch.
struct GlobalBatch {
  int64_t sequence = 0;
  std::vector<int32_t> tokens, targets;
  std::vector<int32_t> positions;    // empty: 0, 1, 2, … in every sample
  std::vector<float> weights;        // empty: 1
  std::vector<float> reference;      // empty: 0
  std::vector<int32_t> token_types;  // empty: 0
  std::vector<float> values;         // empty: 0; otherwise a value for every label in each row
  uint64_t samples() const { return tokens.size() / static_cast<size_t>(sequence); }
  uint64_t target_count() const {
    return static_cast<uint64_t>(
        std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t >= 0; }));
  }
  SampleSource source() const {
    return [this](uint64_t sample, const SampleRows& rows) -> Status {
      const auto copy = [&](const auto& from, auto to) {
        if (!from.empty()) std::copy_n(from.data() + sample * to.size(), to.size(), to.data());
      };
      copy(tokens, rows.integers(Input::tokens));
      copy(targets, rows.integers(Input::targets));
      copy(positions, rows.integers(Input::positions));
      copy(weights, rows.floats(Input::weights));
      copy(token_types, rows.integers(Input::token_types));
      copy(reference, rows.floats(Input::reference));
      copy(values, rows.floats(Input::values));
      return ok();
    };
  }
};

// The gradients of every parameter by name, as sums over the targets. The gradients of all uses of a tied
// tensor are added.
using GradientSums = std::map<std::string, std::vector<double>>;
inline GradientSums gradients_in(const Planned& planned, const GradientView& view) {
  GradientSums all;
  const Arena& arena = planned.programs.arena;
  for (const ParameterGradient& g : planned.graph.gradients) {
    const Buffer& b = arena.persistent[arena.of_tensor[g.gradient]];
    std::vector<double>& sum = all[planned.graph.at(g.parameter).name];
    sum.resize(b.bytes / sizeof(float));
    const float* from = view.data + (b.offset - arena.gradients_begin) / sizeof(float);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(from[i]);
  }
  return all;
}

// Every byte that a step may change: parameters, masters and optimizer states, by name.
using State = std::map<std::string, std::string>;
inline State state_of(const Planned& planned, const void* arena) {
  State state;
  for (const Buffer& b : planned.programs.arena.persistent)
    if (b.owner == MemoryClass::parameters || b.owner == MemoryClass::optimizer)
      state[planned.graph.at(b.tensor).name] =
          std::string(static_cast<const char*>(arena) + b.offset, b.bytes);
  return state;
}

// Names of the tensors that differ; printing whole states would take megabytes.
inline std::string differences(const State& a, const State& b) {
  std::string names;
  for (const auto& [name, bytes] : a)
    if (auto other = b.find(name); other == b.end() || other->second != bytes) names += name + " ";
  if (a.size() != b.size()) names += "(other tensors)";
  return names;
}

// The results of some steps: the state, and the reported figures.
struct Trained {
  State state;
  std::vector<double> figures;  // loss and gradient norm of every step, and figures that a test adds
};
inline void expect_same(const Trained& a, const Trained& b, const std::string& what = "") {
  EXPECT_EQ(differences(a.state, b.state), "") << what;
  ASSERT_EQ(a.figures.size(), b.figures.size()) << what;
  for (size_t i = 0; i < a.figures.size(); ++i)
    EXPECT_EQ(std::bit_cast<uint64_t>(a.figures[i]), std::bit_cast<uint64_t>(b.figures[i]))
        << what << ", figure " << i << ": " << a.figures[i] << " and " << b.figures[i];
}

// A trainer whose arena the test can read.
class OpenTrainer {
 public:
  OpenTrainer(std::shared_ptr<const Model> model, std::shared_ptr<const Planned> planned,
              TrainerOptions options = {}, const Device& device = best_device())
      : planned_(planned), arena_(take((planned->plan.bytes.arena + 255) / 256 * 256, device)) {
    options.arena = arena_.get();
    options.arena_bytes = planned->plan.bytes.arena;
    trainer_ = trainer_for(std::move(model), std::move(planned), options, device);
  }
  Trainer* operator->() { return trainer_.get(); }
  Trainer& operator*() { return *trainer_; }
  State state() const { return state_of(*planned_, bytes().data()); }
  std::string bytes() const {  // while no step is under way
    std::string held(planned_->plan.bytes.arena, '\0');
#if defined(STW_GPU)
    EXPECT_EQ(cudaMemcpy(held.data(), arena_.get(), held.size(), cudaMemcpyDefault), cudaSuccess);
#else
    std::memcpy(held.data(), arena_.get(), held.size());
#endif
    return held;
  }

 private:
  using Memory = std::unique_ptr<void, void (*)(void*)>;
  static Memory take(size_t bytes, [[maybe_unused]] const Device& device) {
#if defined(STW_GPU)  // on a real GPU the host cannot read the arena
    if (device.is_cuda()) {
      void* memory = nullptr;
      EXPECT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
      return {memory, [](void* p) { cudaFree(p); }};
    }
#endif
    return {std::aligned_alloc(256, bytes), std::free};
  }
  std::shared_ptr<const Planned> planned_;
  Memory arena_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace stw::testing_tools
