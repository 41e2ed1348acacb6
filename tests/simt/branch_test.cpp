// Weight gradients in parallel with other ops (src/cuda/branch.h). An independent check over bytes, and runs
// of the graphs with their nodes in other orders, including the branch as late as its joins allow.
#include "src/cuda/branch.h"

#include <algorithm>

#include "kernels/cuda/developer.h"
#include "tests/device/cuda_device.h"
#include "tests/simt/orders.h"

namespace stw {
namespace {

using namespace testing_tools;

struct Case {
  const char* name;
  std::string config;
  Precision precision;
  Gradients gradients;
  bool fused_update;
  int64_t loss_chunks;
  uint64_t host_bytes, memory_bytes;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> cases() {
  return {{"gpt2_dropout", small_gpt2("0.1"), Precision::bf16, Gradients::fp32, false, 3, 0, 0},
          {"llama_bf16_gradients", small_llama(), Precision::bf16, Gradients::bf16, false, 1, 0, 0},
          {"llama_fused_update", small_llama(), Precision::bf16, Gradients::fp32, true, 2, 0, 0},
          {"llama_fp32_offload", small_llama(), Precision::fp32, Gradients::fp32, false, 1,
           uint64_t{64} << 20, 1}};
}

std::shared_ptr<const Planned> planned(const Model& model, Request r, const Case& c) {
  r.precision = c.precision, r.gradients = c.gradients, r.fused_update = c.fused_update,
  r.host_bytes = c.host_bytes;
  r.micro_batch = c.fused_update ? 0 : 2;
  if (c.memory_bytes > 0) {  // The least memory that suffices.
    r.memory_bytes = 1;
    r.memory_bytes = (*Planned::make(model, r))->plan.minimum_bytes;
  }
  const auto chosen = plan_for(model, r);
  Decisions d = chosen->plan.decisions;
  d.loss_chunks = c.loss_chunks;
  return c.loss_chunks > 1 ? plan_with(model, r, d) : chosen;
}

// Goes through a program in order. For each 64 bytes of the arena it remembers the last op of the branch that
// read or wrote them. The branch ends in order: if an op has been waited for, it and all ops before it have
// ended. Returns the number of conflicts.
int conflicts(const Graph& graph, const Programs& programs, const Program& program, const Stage& stage,
              const cuda::Branch& branch) {
  constexpr uint64_t piece = 64;
  std::vector<int> read_by(programs.arena_bytes / piece + 1, -1), written_by = read_by;
  int ended = -1, found = 0;
  for (size_t k = stage.ops; k < stage.end; ++k) {
    const Instruction& i = program.instructions[k];
    if (!branch.has[k]) ended = std::max(ended, branch.waits_for[k]);
    const auto touch = [&](const Operand& o, bool writes) {
      if (o.buffer < 0) return;
      const Buffer& b = o.persistent ? programs.arena.persistent[o.buffer] : program.buffers[o.buffer];
      for (uint64_t p = (b.offset + o.offset) / piece; p * piece < b.offset + b.bytes; ++p) {
        if (branch.has[k]) (writes ? written_by : read_by)[p] = static_cast<int>(k);
        else found += written_by[p] > ended || (writes && read_by[p] > ended);
      }
    };
    int operand = i.first_operand;
    // Fused ops have different numbers of operands.
    for (int op = i.op; op < i.op + i.ops; ++op) {
      const bool is_other = op > i.op && graph.op(op).fused;
      const int inputs = is_other ? static_cast<int>(graph.op(op).inputs.size()) : i.inputs;
      const int outputs = is_other ? static_cast<int>(graph.op(op).outputs.size()) : i.outputs;
      for (int n = 0; n < inputs + outputs; ++n) touch(program.operands[operand++], n >= inputs);
    }
    touch(i.workspace, true);
  }
  return found;
}

class WeightGradientBranch : public CudaDeviceTest, public testing::WithParamInterface<Case> {};

TEST_P(WeightGradientBranch, WaitsOnlyForOpsThatShareMemory) {
  const auto model = model_of(GetParam().config);
  const auto plan = planned(*model, request(), GetParam());
  int on_branch = 0, waits = 0, needed = 0;
  for (const Program* program : plan->programs.all())
    for (const Stage& stage : stages_of(*program)) {
      cuda::Branch branch =
          cuda::weight_gradient_branch(plan->graph, plan->programs.arena, *program, stage.ops, stage.end);
      EXPECT_EQ(conflicts(plan->graph, plan->programs, *program, stage, branch), 0) << program->name;
      for (size_t k = stage.ops; k < stage.end; ++k) {
        EXPECT_EQ(branch.has[k], program->instructions[k].kind == OpKind::linear_weight_gradient);
        on_branch += branch.has[k];
        if (branch.waits_for[k] < 0) continue;
        EXPECT_LT(branch.waits_for[k], static_cast<int>(k));
        ++waits;
        const int was = std::exchange(branch.waits_for[k], -1);
        const OpKind kind = program->instructions[k].kind;
        // The StepState is not an operand.
        const bool of_state = kind == OpKind::loss_sum || kind == OpKind::finish_step;
        needed += of_state || conflicts(plan->graph, plan->programs, *program, stage, branch) > 0;
        branch.waits_for[k] = was;
      }
    }
  EXPECT_GT(on_branch, 0);
  EXPECT_GT(waits, 0);
  EXPECT_EQ(needed, waits) << "some wait for what they need not";
}

TEST_P(WeightGradientBranch, LeavesNoTraceHoweverLateItRuns) {
#ifdef STW_SANITIZED
  GTEST_SKIP() << "minutes under a sanitizer";
#endif
  model_ = model_of(GetParam().config);
  const auto plan = planned(*model_, request(), GetParam());
  TrainerOptions options;
  if (GetParam().fused_update) options.clip_norm = 0;
  const auto trained = [&](bool branch, simt::Options order) {
    const simt::InOrder in_order(order);
    auto& asked = kernels::cuda::developer_switches().weight_gradient_branch;
    asked = branch;
    const std::string bytes = run(*trainer_for(model_, plan, options, cuda_device()), 0, 2);
    asked = false;
    return bytes;
  };
  const std::string serial = trained(false, {});
  for (const simt::Options& order :
       {simt::Options{}, simt::Options{simt::Order::reverse, 1}, simt::Options{simt::Order::random, 1}})
    EXPECT_TRUE(trained(true, order) == serial) << static_cast<int>(order.order);
}

INSTANTIATE_TEST_SUITE_P(Plans, WeightGradientBranch, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stw
