// Graphs that no family builds, with their programs and memory, on the CPU.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/program/verify.h"
#include "src/base/hash.h"
#include "src/base/random.h"
#include "src/execute/call.h"
#include "tests/src/small_trainer.h"

namespace stw::testing_tools {

inline Decisions decisions_of(const Graph& graph, int64_t micro_batch, uint32_t saved, int64_t chunks = 1) {
  Decisions d;
  d.micro_batch = micro_batch;
  d.loss_chunks = chunks;
  for (const Segment& s : graph.segments)
    d.saved.push_back(s.kind == SegmentKind::block ? s.choice_of(saved) : ~0u);
  return d;
}

inline std::string shared_name(const std::string& name) {  // without "#" and the number of a use
  const size_t at = name.find('#');
  size_t end = at;
  while (at != name.npos && ++end < name.size() && name[end] >= '0' && name[end] <= '9') {}
  return at == name.npos ? name : name.substr(0, at) + name.substr(end);
}

// A graph with its programs and memory. Parameters whose names differ only in the number of a use have equal
// values.
class Running {
 public:
  static constexpr int64_t batch_size = 5;

  Running(Graph graph, const Decisions& decisions)
      : graph_(std::move(graph)),
        programs_(make_programs(graph_, decisions, batch_size, 1, 64)),
        arena_(programs_.arena_bytes),
        host_(programs_.arena.host_bytes) {
    for (const Program* p : programs_.all()) {
      const Status status = verify(graph_, programs_.arena, *p, programs_.arena_bytes);
      EXPECT_TRUE(status) << status.error().message;
    }
    x_.graph = &graph_, x_.layout = &programs_.arena, x_.arena = arena_.data, x_.host = host_.data,
    x_.table = kernels::cpu_table(kernels::best_isa());
    x_.parallel = {nullptr, 1, [](void*, int64_t tasks, void (*task)(void*, int64_t, int), void* context) {
                     for (int64_t i = 0; i < tasks; ++i) task(context, i, 0);
                   }};
    x_.weight_decay = 0.1;
    x_.state = reinterpret_cast<kernels::StepState*>(x_.address(graph_.state));
    for (int t = 0; t < static_cast<int>(graph_.tensors.size()); ++t)
      if (graph_.owns_bytes(t)) fill(t);
  }

  // The micro-steps of step number `step`. Returns the sum of the losses.
  double forward_and_backward(uint64_t step, double max_norm = 1) {
    kernels::StepState& s = *x_.state = {};
    s.seed = 3, s.step = step, s.learning_rate = 1e-2, s.beta1 = 0.9, s.beta2 = 0.95, s.epsilon = 1e-8,
    s.max_norm = max_norm, s.momentum = 0.9;
    s.inverse_root = 1 / std::sqrt(static_cast<double>(step + 1)),
    s.fresh_share = std::pow(static_cast<double>(step + 1), -0.8);
    s.batch_factor = s.loss_scale = 1;
    for (int64_t first = 0; first < batch_size; first += programs_.micro_first.samples) {
      const Program& p = first == 0                                           ? programs_.micro_first
                         : batch_size - first < programs_.micro_first.samples ? programs_.micro_short
                                                                              : programs_.micro_next;
      for (int64_t sample = 0; sample < p.samples; ++sample)
        for (int64_t i = 0; i < graph_.sequence; ++i) {
          const auto words = philox(11, {static_cast<uint32_t>(step), static_cast<uint32_t>(first + sample),
                                         static_cast<uint32_t>(i), 0});
          x_.rows<int32_t>(p, p.inputs[Input::tokens])[sample * graph_.sequence + i] =
              static_cast<int32_t>(words[0] % static_cast<uint32_t>(graph_.vocabulary));
          x_.rows<int32_t>(p, p.inputs[Input::targets])[sample * graph_.sequence + i] =
              words[1] % 5 == 0 ? kernels::ignored_target
                                : static_cast<int32_t>(words[2] % static_cast<uint32_t>(graph_.vocabulary));
        }
      s.first_sample = static_cast<uint64_t>(first);
      execute(x_, p);
    }
    return s.loss_sum;
  }
  void update() { execute(x_, programs_.update); }

  // The gradients of all uses of the parameter with this name.
  template <class T = float>
  std::vector<std::vector<T>> gradients(const std::string& name) const {
    std::vector<std::vector<T>> list;
    for (const ParameterGradient& g : graph_.gradients) {
      if (graph_.at(g.parameter).name != name) continue;
      const auto* values = reinterpret_cast<const T*>(x_.address(g.gradient));
      list.emplace_back(values, values + graph_.at(g.gradient).shape.elements());
    }
    return list;
  }
  std::vector<std::string> trained() const {
    std::vector<std::string> names;
    for (int t = 0; t < static_cast<int>(graph_.tensors.size()); ++t)
      if (graph_.owns_bytes(t) && graph_.at(t).trainable) names.push_back(graph_.at(t).name);
    return names;
  }
  template <class T>
  T* values(const std::string& name) {
    for (int t = 0; t < static_cast<int>(graph_.tensors.size()); ++t)
      if (graph_.owns_bytes(t) && graph_.at(t).name == name) return reinterpret_cast<T*>(x_.address(t));
    return nullptr;
  }
  void poison(int gradient) {
    reinterpret_cast<float*>(x_.address(gradient))[3] = std::numeric_limits<float>::infinity();
  }
  uint64_t arena_bytes() const { return programs_.arena_bytes; }
  const kernels::StepState& state() const { return *x_.state; }
  // All that a step changes, in the arena and in host memory.
  State bytes() const {
    State state;
    for (int t = 0; t < static_cast<int>(graph_.tensors.size()); ++t) {
      const Role role = graph_.at(t).role;
      if (graph_.owns_bytes(t) || role == Role::master || role == Role::optimizer)
        state[graph_.at(t).name] =
            std::string(reinterpret_cast<const char*>(x_.address(t)), graph_.at(t).bytes(1));
    }
    return state;
  }

 private:
  struct Memory {
    explicit Memory(uint64_t bytes)
        : data(static_cast<std::byte*>(std::aligned_alloc(256, round_up(bytes + 1, 256)))) {
      std::memset(data, 0, bytes);
    }
    ~Memory() { std::free(data); }
    Memory(const Memory&) = delete;
    std::byte* data;
  };

  void fill(int tensor) {
    const Tensor& t = graph_.at(tensor);
    const std::string name = shared_name(t.name);
    std::vector<float> values(t.shape.elements());
    for (size_t i = 0; i < values.size(); ++i) {
      const auto words = philox(hash64(name.data(), name.size()), {static_cast<uint32_t>(i), 0, 0, 0});
      const float uniform = static_cast<float>(words[0] >> 8) * 0x1p-24f - 0.5f;
      values[i] = t.initializer == Initializer::ones ? 1 + 0.2f * uniform : uniform;
    }
    std::byte* to = x_.address(tensor);
    if (t.format == Format::f32) {
      std::memcpy(to, values.data(), values.size() * sizeof(float));
    } else if (t.format == Format::bf16) {
      for (size_t i = 0; i < values.size(); ++i)
        reinterpret_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(values[i]) >> 16);
    } else {
      const kernels::WeightCodes codes = weight_codes_of(t.format);
      const auto count = static_cast<int64_t>(values.size());
      kernels::quantize_weights(codes, values.data(), count, reinterpret_cast<uint8_t*>(to),
                                reinterpret_cast<float*>(to + kernels::scales_begin(codes, count)));
    }
  }

  Graph graph_;
  Programs programs_;
  Memory arena_, host_;
  Execution x_;
};

}  // namespace stw::testing_tools
