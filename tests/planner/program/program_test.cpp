// Tests programs against the closed forms of the search, and against their decisions.
#include "planner/program/program.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "kernels/contract/cuda_workspace.h"
#include "planner/program/verify.h"
#include "planner/search/pricing.h"
#include "tests/planner/device/calibrated_profiles.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

// Copies in both directions take as long as the longer of them, so the stages copy about as many bytes each.
TEST(Program, StagesOfAnUpdateCopyAboutAsMuch) {
  for (const std::string& config : {small_gpt2(), small_llama()}) {
    const Graph g = graph_of(config);
    Offload offload;
    offload[Offloaded::optimizer] = g.blocks() + 1;
    offload.overlap = true;
    offload.slice = 2048;
    const Program p = build_update(g, make_arena(g, 64, offload), 1);
    std::map<int, uint64_t> fetched;  // bytes by stage
    for (const Instruction& i : p.instructions)
      if (i.kind == OpKind::fetch) fetched[i.stage] += p.buffers[p.operands[i.first_operand].buffer].bytes;
    ASSERT_GT(fetched.size(), 4u);
    fetched.erase(std::prev(fetched.end()));  // the rest
    for (const auto& [stage, bytes] : fetched) {
      EXPECT_LE(bytes, 2 * 4 * 2048u) << stage;
      EXPECT_GE(bytes, 2 * 4 * 2048u / 8 * 7 - 2 * 4 * 256) << stage;
    }
  }
}

TEST(Program, PricesAreTheSumsOfTheInstructions) {
  std::mt19937 random(4);
  for (const DeviceProfile& device :
       {*find_device("cpu"), *find_device("rtx4090"), random_profile("cpu", 1), random_profile("h100", 2)})
    for (const Graph& g : small_graphs()) {
      const Pricing pricing(g, device, 2);
      for (int round = 0; round < 40; ++round) {
        const int64_t batch = 1 + static_cast<int64_t>(random() % 9);
        const Decisions d = random_decisions(g, random, batch);
        const Programs p = make_programs(g, d, batch, 2, device.alignment);
        const uint64_t whole = static_cast<uint64_t>(batch / d.micro_batch);
        uint64_t sum = whole * pricing.program(p.micro_next) + pricing.program(p.update), again = 0;
        EXPECT_EQ(pricing.program(p.micro_first), pricing.program(p.micro_next));
        EXPECT_EQ(p.micro_short.instructions.empty(), batch % d.micro_batch == 0);
        sum += pricing.program(p.micro_short);
        for (const Program* program : {&p.micro_next, &p.micro_short}) {
          Program part = *program;
          std::erase_if(part.instructions, [](const Instruction& i) { return i.phase != Phase::recompute; });
          again += pricing.program(part) * (program == &p.micro_next ? whole : 1);
        }
        EXPECT_EQ(pricing.step(d, batch), sum);
        EXPECT_EQ(pricing.recompute(d, batch), again);
        EXPECT_GE(sum, pricing.fastest(batch, 0));
        EXPECT_GE(sum, pricing.fastest(batch, d.micro_batch));
      }
    }
}

// The update of a model is a few instructions, each of at most kernels::most_together ops of one kind.
TEST(Program, UpdatesAreJoined) {
  for (const Graph& g : small_graphs()) {
    const Program update = build_update(g, make_arena(g, 64), 2);
    std::map<OpKind, int> ops, instructions;
    for (const Instruction& i : update.instructions) {
      EXPECT_TRUE(i.ops == 1 || op_row(i.kind).is_multi_tensor);
      for (int k = 0; k < i.ops; ++k) EXPECT_EQ(g.op(i.op + k).kind, i.kind);
      ops[i.kind] += i.ops;
      instructions[i.kind] += 1;
    }
    for (const auto& [kind, count] : ops)
      EXPECT_EQ(instructions[kind], op_row(kind).is_multi_tensor
                                        ? (count + kernels::most_together - 1) / kernels::most_together
                                        : count)
          << op_row(kind).name;
    EXPECT_EQ(
        std::accumulate(ops.begin(), ops.end(), 0, [](int sum, const auto& o) { return sum + o.second; }),
        static_cast<int>(g.update_ops.size()));
  }
}

TEST(Program, BoundsHold) {
  std::mt19937 random(5);
  std::vector<Graph> graphs = small_graphs();
  for (Graph& g : frozen_graphs()) graphs.push_back(std::move(g));
  for (Graph& g : packed_graphs()) graphs.push_back(std::move(g));
  for (Graph& g : classifier_graphs()) graphs.push_back(std::move(g));
  for (const Graph& g : graphs) {
    for (int round = 0; round < 60; ++round) {
      const int64_t batch = 1 + static_cast<int64_t>(random() % 9);
      const Decisions d = random_decisions(g, random, batch);
      const Programs p = make_programs(g, d, batch, 2, 64);
      EXPECT_LE(p.bound_bytes, p.arena_bytes);
      for (const Program* program : p.all()) {
        EXPECT_LE(live_bound(*program, 64), program->end) << program->name;
        EXPECT_LE(program->end, p.arena_bytes);
        const Status status = verify(g, p.arena, *program, p.arena_bytes);
        ASSERT_TRUE(status) << status.error().message;
      }
      const Bytes bytes = account(p);
      uint64_t sum = bytes.padding;
      for (uint64_t b : bytes.of) sum += b;
      EXPECT_EQ(sum, bytes.arena);
      EXPECT_EQ(bytes.arena, p.arena_bytes);
      EXPECT_LT(bytes.padding, bytes.arena / 4);
    }
  }
}

int recomputed(const Program& p) {
  return static_cast<int>(std::count_if(p.instructions.begin(), p.instructions.end(),
                                        [](const Instruction& i) { return i.phase == Phase::recompute; }));
}

TEST(Program, NothingIsRecomputedWhereAllIsKept) {
  for (const Graph& g : small_graphs()) {
    const Programs p = make_programs(g, uniform_decisions(g, ~0u), 2, 1, 64);
    EXPECT_EQ(recomputed(p.micro_next), 0);
    size_t ops = 0;
    for (const Instruction& i : p.micro_next.instructions) ops += static_cast<size_t>(i.ops);
    // The loss's forward op runs in the backward pass.
    EXPECT_EQ(ops, g.ops.size() - 1 + g.gradient_ops.size());
  }
}

// Some instructions do several ops. The product before GELU computes GELU too. The product that computes the
// gradient of GELU's output also computes GELU's gradient and the gradient of the bias before GELU. One
// instruction computes the weight gradients of two matrices. The gradient of a norm includes the bias
// gradient that reads the norm's addend. For a block's first norm it also includes the bias gradient of the
// product that computes queries, keys and values. The tensor between a product and GELU has memory only if it
// is kept.
TEST(Program, FusedOpsAreOneInstruction) {
  const Graph g = graph_for(small_gpt2(), Kernels::tensor);
  for (uint32_t saved : {~0u, 0u}) {
    const Programs p = make_programs(g, uniform_decisions(g, saved), 2, 0, 64);
    std::map<std::pair<OpKind, int>, int> count;  // key: the first op, and the number of ops
    int kept = 0;
    for (const Instruction& i : p.micro_next.instructions) {
      count[{i.kind, i.ops}] += 1;
      if (i.kind == OpKind::linear && i.ops > 1)
        kept += p.micro_next.operands[i.first_operand + i.inputs].buffer >= 0;
    }
    const int blocks = g.blocks();
    EXPECT_EQ((count[{OpKind::linear, 2}]), saved ? blocks : 2 * blocks);  // recompute computes both again
    EXPECT_EQ(kept, blocks);
    EXPECT_EQ((count[{OpKind::linear_input_gradient, 3}]), blocks);
    EXPECT_EQ((count[{OpKind::linear_weight_gradient, 2}]), 2 * blocks);
    for (int ops : {2, 3}) EXPECT_EQ((count[{OpKind::norm_gradient, ops}]), blocks) << ops;
    for (OpKind kind : {OpKind::activation, OpKind::activation_gradient, OpKind::linear_bias_gradient})
      EXPECT_EQ((count[{kind, 1}]), 0);
  }
}

// Fused ops take no more memory than the same ops one by one, whatever is kept. The sums of the bias before
// GELU are an exception.
TEST(Program, FusedOpsTakeNoMoreMemory) {
  std::mt19937 random(12);
  for (const char* dropout : {"0", "0.1"}) {
    Graph fused = graph_for(small_gpt2(dropout), Kernels::tensor),
          alone = graph_for(small_gpt2(dropout), Kernels::portable);
    fused.tile_rows = alone.tile_rows = {16, 80};
    ASSERT_EQ(fused.ops.size(), alone.ops.size());
    for (int round = 0; round < 60; ++round) {
      const Decisions d = random_decisions(fused, random, 4);
      const auto bound = [&](const Graph& g) {
        const Programs p = make_programs(g, d, d.micro_batch, 0, 64);
        return live_bound(p.micro_first, 64);
      };
      const uint64_t sums =
          kernels::cuda_workspace::tile_sums(d.micro_batch * fused.sequence, fused.sequence,
                                             fused.features(fused.segments[1].feed_forward.inner[0]));
      EXPECT_LE(bound(fused), bound(alone) + round_up(sums, 64));
    }
  }
}

TEST(Program, FullRecomputeKeepsBlockOutputsOnly) {
  for (const Graph& g : small_graphs()) {
    const Programs p = make_programs(g, uniform_decisions(g, 0), 2, 1, 64);
    EXPECT_GT(recomputed(p.micro_next), 0);
    // Buffers that live across the head, without inputs: the outputs of the segments.
    int head = -1;
    for (size_t i = 0; i < p.micro_next.instructions.size() && head < 0; ++i)
      if (p.micro_next.instructions[i].kind == OpKind::cross_entropy) head = static_cast<int>(i);
    std::set<int> outputs;
    for (const Segment& s : g.segments) outputs.insert(s.output);
    // An in-place op puts its output where its input was. Such a buffer is named after the input.
    std::set<int> holds_output;
    for (const Instruction& i : p.micro_next.instructions)
      for (int k = 0; k < i.outputs; ++k) {
        const Operand& o = p.micro_next.operands[i.first_operand + i.inputs + k];
        if (!o.persistent && outputs.count(g.op(i.op).outputs[k])) holds_output.insert(o.buffer);
      }
    for (size_t index = 0; index < p.micro_next.buffers.size(); ++index) {
      const Buffer& b = p.micro_next.buffers[index];
      if (b.owner != MemoryClass::saved_activations || b.first >= head - 1 || b.last <= head + 4) continue;
      const int segment = g.at(b.tensor).segment;
      if (g.segments[segment].kind == SegmentKind::block) {
        EXPECT_TRUE(holds_output.count(static_cast<int>(index))) << g.at(b.tensor).name;
      }
    }
    EXPECT_LT(p.arena_bytes, make_programs(g, uniform_decisions(g, ~0u), 2, 1, 64).arena_bytes);
    // No op of a block runs more than twice.
    std::map<int, int> runs;
    for (const Instruction& i : p.micro_next.instructions)
      if (i.op < static_cast<int>(g.ops.size()) && i.phase != Phase::backward) { EXPECT_LE(++runs[i.op], 2); }
  }
}

// The backward pass does not need the residual that a tiled part only adds to its product. Kept next to the
// tiles, it would waste memory.
TEST(Program, TilesDoNotWaitForTheResidual) {
  int seen = 0;
  for (const Graph& g : small_graphs()) {
    Decisions d = uniform_decisions(g, 0);
    // Each block keeps the input of its part, and the outputs of the part's last op and of later ops.
    for (size_t s = 0; s < g.segments.size(); ++s) {
      const Segment& segment = g.segments[s];
      const FeedForward& part = segment.feed_forward;
      d.tile_rows.push_back(part.exists() ? g.tile_rows[0] : 0);
      for (size_t bit = 0; bit < segment.saveable.size() && part.exists(); ++bit) {
        const int op = segment.saveable[bit];
        if (g.op(op).outputs[0] == g.op(part.first_op).inputs[0] || op >= part.first_op + part.op_count - 1)
          d.saved[s] |= 1u << bit;
      }
      EXPECT_EQ(may_tile(g, segment, d.saved[s]), part.exists());
    }
    const Programs p = make_programs(g, d, 2, 1, 64);
    for (const Segment& segment : g.segments) {
      const FeedForward& part = segment.feed_forward;
      const int residual = part.exists() ? residual_of(g.op(part.first_op + part.op_count - 1)) : -1;
      if (residual < 0) continue;
      const int first = static_cast<int>(g.ops.size()) + part.first_gradient_op;
      bool is_made = false;
      for (const Instruction& i : p.micro_next.instructions) {
        is_made |= i.phase == Phase::recompute && g.op(i.op).outputs[0] == residual;
        if (i.op < first || i.op >= first + part.gradient_op_count) continue;
        EXPECT_FALSE(is_made) << g.at(residual).name;
        seen += i.rows < p.micro_next.samples * g.sequence;
      }
      EXPECT_TRUE(is_made);
    }
  }
  EXPECT_GT(seen, 0);
}

// The first micro-step overwrites gradients. The others, and later loss chunks, add to them.
TEST(Program, FirstMicroStepOverwritesGradients) {
  const Graph g = graph_of(small_llama());
  const Programs p = make_programs(g, uniform_decisions(g, 0, 2, 4), 5, 1, 64);
  EXPECT_EQ(p.micro_short.samples, 1);
  EXPECT_EQ(p.micro_next.samples, 2);
  auto flags = [&](const Program& program) {
    std::map<int, std::vector<bool>> by_op;
    for (const Instruction& i : program.instructions)
      for (int k = 0; k < i.outputs; ++k) {
        const Operand& o = program.operands[i.first_operand + i.inputs + k];
        if (o.persistent && o.buffer >= 0 && p.arena.persistent[o.buffer].owner == MemoryClass::gradients) {
          by_op[i.op].push_back(i.accumulate);
          break;
        }
      }
    return by_op;
  };
  for (const auto& [op, list] : flags(p.micro_first))
    for (size_t i = 0; i < list.size(); ++i) EXPECT_EQ(list[i], i > 0) << op_row(g.op(op).kind).name;
  for (const Program* program : {&p.micro_next, &p.micro_short})
    for (const auto& [op, list] : flags(*program))
      for (bool accumulate : list) EXPECT_TRUE(accumulate) << op_row(g.op(op).kind).name;
}

TEST(Program, ChunksCoverTheRows) {
  std::mt19937 random(6);
  for (int round = 0; round < 2000; ++round) {
    const int64_t sequence = 1 + static_cast<int64_t>(random() % 300) * (round % 4 == 0 ? 16 : 1);
    const int64_t rows = sequence * (1 + static_cast<int64_t>(random() % 20)),
                  chunks = 1 + static_cast<int64_t>(random() % 64);
    const int64_t unit = round % 2 ? kernels::chain_terms : frozen_chunk_unit,
                  step = chunk_rows(rows, chunks, unit);
    EXPECT_GE(step, 1);
    EXPECT_LE(step, rows);
    EXPECT_TRUE(step == rows || step % unit == 0);
    EXPECT_LE((rows + step - 1) / step, chunks);
    int64_t end = 0;
    for (const Tile& chunk : loss_chunks(rows, sequence, chunks, unit)) {
      EXPECT_EQ(chunk.begin, end);
      end += chunk.rows;
      EXPECT_TRUE(chunk.rows > 0 && chunk.rows <= step);
      if (end == rows) continue;
      EXPECT_EQ(end % sequence % unit, 0) << "inside of a chain";
      // The next place for a cut.
      const int64_t next = std::min(end + unit - end % sequence % unit, (end / sequence + 1) * sequence);
      EXPECT_GT(next - chunk.begin, step) << "shorter than it has to be";
    }
    EXPECT_EQ(end, rows);
  }
}

// A head that trains its matrix is cut between the chains of the matrix's gradient. Any other head is cut at
// multiples of a tensor core's step.
TEST(Program, ChunksAreMadeOfWholeChains) {
  const auto unit_of = [](const SmallModel& model, const char* frozen) {
    Numerics numerics;
    if (*frozen) numerics.groups = {{frozen, true, {}, {}, {}}};
    return chunk_unit(build_model(config_of(model), 33, numerics));
  };
  EXPECT_EQ(unit_of(small_llama(), ""), kernels::chain_terms);
  EXPECT_EQ(unit_of(small_llama(), "head"), frozen_chunk_unit);
  EXPECT_EQ(unit_of(small_gpt2(), ""), kernels::chain_terms);  // tied to the embeddings
  EXPECT_EQ(unit_of({small_llama(), adapters_of_all()}, ""), frozen_chunk_unit);
}

// Caches lie at the same offsets in both programs of generation, below their other buffers.
TEST(Program, GenerationSharesItsCaches) {
  for (const Graph& g : small_graphs()) {
    const Programs p = make_programs(g, uniform_decisions(g, 0), 2, 2, 64);
    ASSERT_EQ(p.prefill.caches.size(), p.decode.caches.size());
    EXPECT_EQ(p.prefill.caches.size(), 2 * static_cast<size_t>(g.blocks()));
    for (size_t i = 0; i < p.decode.caches.size(); ++i) {
      const Buffer &a = p.prefill.buffers[p.prefill.caches[i]], &b = p.decode.buffers[p.decode.caches[i]];
      EXPECT_EQ(a.offset, b.offset);
      EXPECT_EQ(a.tensor, b.tensor);
    }
    EXPECT_GE(p.decode.logits, 0);
  }
}

}  // namespace
}  // namespace stw
