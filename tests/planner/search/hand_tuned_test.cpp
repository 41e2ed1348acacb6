// Settings that people found by hand for Qwen2.5 on cards of 16 and 24 GB, with a global batch of 488 samples
// of 1,024 tokens. Their numerics are bf16 throughout: gradients and moments have 2 bytes each, and a
// parameter is its own master. No kernel trains in this format yet. The test plans a graph whose tensors have
// these sizes.
//
// The programs of each setting must fit on the card. By the same cost model, the planner's own answer must
// not be slower.
#include <cstdio>

#include "planner/program/verify.h"
#include "planner/search/search_space.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

struct Setting {
  const char* model;
  const char* device;
  uint64_t gib;
  int64_t micro_batch;
  std::vector<std::string> recomputed;
  std::vector<Offloaded> offloaded;
};

const std::vector<std::string> block{"attn_norm", "qkv_rope", "attention", "attn_residual",
                                     "ffn_norm",  "gate_up",  "swiglu"};
const Setting settings[] = {
    {"qwen2.5-0.5b", "rtx4090", 24, 16, {}, {}},
    {"qwen2.5-1.5b", "rtx4090", 24, 4, {}, {}},
    {"qwen2.5-3b", "rtx4090", 24, 4, {"swiglu"}, {Offloaded::optimizer}},
    {"qwen2.5-7b", "rtx4090", 24, 16, block, {Offloaded::optimizer, Offloaded::weights, Offloaded::inputs}},
    {"qwen2.5-0.5b", "rtx5060ti", 16, 10, {}, {}},
    {"qwen2.5-1.5b", "rtx5060ti", 16, 8, {"qkv_rope", "attention", "gate_up", "swiglu"}, {}},
};

Graph sixteen_bits(Graph graph) {
  for (Tensor& t : graph.tensors)
    if ((t.role == Role::gradient && !t.per_sample) || t.role == Role::optimizer) t.format = Format::bf16;
  for (Op& op : graph.update_ops)
    if (op.kind == OpKind::adamw && op.outputs[1] >= 0) {
      graph.tensors[op.outputs[1]].role = Role::activation;  // in no program
      op.outputs[1] = -1;
    }
  return graph;
}

uint64_t step_picoseconds(const Pricing& pricing, const Programs& p, const Decisions& d, int64_t batch) {
  const bool overlap = d.offload.overlap;
  uint64_t sum = pricing.program(p.micro_first, overlap) + pricing.program(p.update, overlap);
  sum += pricing.program(p.micro_next, overlap) * static_cast<uint64_t>(batch / d.micro_batch - 1);
  return batch % d.micro_batch > 0 ? sum + pricing.program(p.micro_short, overlap) : sum;
}

TEST(HandTuned, EachFitsAndNoneIsFasterThanThePlan) {
  constexpr double gib = 1 << 30;
  Request request;
  request.global_batch = 488;
  request.sequence = 1024;
  request.precision = Precision::bf16;
  request.state_bits = 32;
  Numerics numerics;
  numerics.precision = Precision::bf16;
  numerics.kernels = Kernels::tensor;
  for (const Setting& s : settings) {
#ifdef STW_SANITIZED
    if (!s.offloaded.empty()) continue;  // a minute each
#endif
    const char* const config = find_preset(s.model);
    ASSERT_NE(config, nullptr) << s.model;
    const auto source = [&](const Numerics& n) {
      return sixteen_bits(build_model(testing_tools::config_of(config), 1024, n));
    };
    const DeviceProfile& device = *find_device(s.device);
    request.device = s.device;
    request.host_bytes = s.offloaded.empty() ? 0 : uint64_t{200} << 30;
    const Graph graph = source(numerics);

    Decisions hand;
    hand.micro_batch = s.micro_batch;
    hand.loss_chunks = 16;
    for (const Segment& segment : graph.segments) {
      uint32_t saved = ~0u;
      if (segment.kind == SegmentKind::block) {
        saved = (1u << segment.saveable.size()) - 1;
        for (size_t bit = 0; bit < segment.saveable.size(); ++bit)
          for (const std::string& name : s.recomputed)
            if (graph.at(graph.op(segment.saveable[bit]).outputs[0]).name == name) saved &= ~(1u << bit);
      }
      hand.saved.push_back(saved);
    }
    for (Offloaded what : s.offloaded) hand.offload[what] = graph.blocks() + 1;
    hand.offload.overlap = hand.offload.any();
    const Programs programs = make_programs(graph, hand, request.global_batch, 1, device.alignment);
    for (const Program* p : programs.all()) {
      const Status status = verify(graph, programs.arena, *p, programs.arena_bytes);
      EXPECT_TRUE(status) << status.error().message;
    }
    const uint64_t budget = s.gib << 30, peak = programs.arena_bytes + device.reserve_bytes;
    SearchSpace space(source, numerics, request, device);
    const uint64_t by_hand = step_picoseconds(space.pricing(), programs, hand, request.global_batch);
    const auto plan = space.fastest(budget - device.reserve_bytes);
    ASSERT_TRUE(plan) << s.model;
    EXPECT_LE(peak, budget) << s.model << " on " << s.device;
    EXPECT_LE(plan->picoseconds, by_hand) << s.model << " on " << s.device;
    const Programs built = space.programs(plan->decisions);
    EXPECT_EQ(plan->picoseconds,
              step_picoseconds(space.pricing(), built, plan->decisions, request.global_batch));
    std::printf(
        "%-13s %-10s by hand: micro-batch %2d, %5.2f GiB, host %5.1f GiB, %6.2f s; planned: micro-batch %2d, "
        "%5.2f GiB, host %5.1f GiB, %6.2f s\n",
        s.model, s.device, static_cast<int>(s.micro_batch), static_cast<double>(peak) / gib,
        static_cast<double>(programs.arena.host_bytes) / gib, static_cast<double>(by_hand) * 1e-12,
        static_cast<int>(plan->decisions.micro_batch),
        static_cast<double>(built.arena_bytes + device.reserve_bytes) / gib,
        static_cast<double>(built.arena.host_bytes) / gib, static_cast<double>(plan->picoseconds) * 1e-12);
  }
}

}  // namespace
}  // namespace stw
