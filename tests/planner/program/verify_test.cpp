// The judge must find every kind of mistake. Each is made once in a correct program.
#include "planner/program/verify.h"

#include <algorithm>
#include <functional>

#include "planner/graph/kept_rows.h"
#include "planner/graph/optimizer.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

class Verify : public testing::Test {
 protected:
  Verify()
      : graph_(graph_of(small_llama())),
        programs_(make_programs(graph_, uniform_decisions(graph_, 0, 2, 2), 5, 2, 64)) {}
  // The error after `change`. Empty if nothing was found.
  std::string found(const std::function<void(Arena&, Program&, uint64_t&)>& change,
                    const Program* base = nullptr) const {
    Arena arena = programs_.arena;
    Program program = base ? *base : programs_.micro_next;
    uint64_t bytes = programs_.arena_bytes;
    change(arena, program, bytes);
    const Status status = verify(graph_, arena, program, bytes);
    return status ? "" : status.error().message;
  }
  static void expect_has(const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos)
        << "expected \"" << part << "\", found \"" << message << "\"";
  }
  // A buffer that lives through several instructions and is neither input nor scratch memory.
  static Buffer& long_lived(Program& p) {
    for (Buffer& b : p.buffers)
      if (b.tensor >= 0 && b.owner != MemoryClass::inputs && b.last > b.first + 3) return b;
    ADD_FAILURE();
    return p.buffers[0];
  }
  Graph graph_;
  Programs programs_;
};

TEST_F(Verify, CorrectProgramsPass) {
  for (const Program* p : programs_.all()) {
    const Status status = verify(graph_, programs_.arena, *p, programs_.arena_bytes);
    EXPECT_TRUE(status) << status.error().message;
  }
  EXPECT_EQ(programs_.all().size(), 7u);
}

TEST_F(Verify, EveryOverlappingPair) {
  // For any two buffers that are alive together: moves the second onto the first, a little into it, or just
  // before its end.
  const Program& good = programs_.micro_next;
  int pairs = 0;
  for (size_t a = 0; a < good.buffers.size(); a += 3)
    for (size_t b = 0; b < good.buffers.size(); ++b) {
      const Buffer &x = good.buffers[a], &y = good.buffers[b];
      if (a == b || x.first > y.last || y.first > x.last) continue;
      for (uint64_t shift : {uint64_t{0}, (x.bytes - 1) / 64 * 64}) {
        ++pairs;
        EXPECT_NE(found([&](Arena&, Program& p, uint64_t& bytes) {
                    p.buffers[b].offset = p.buffers[a].offset + shift;
                    bytes += 1 << 30;
                  }),
                  "");
      }
    }
  EXPECT_GT(pairs, 1000);
}

TEST_F(Verify, LifetimeTooShort) {
  expect_has(found([](Arena&, Program& p, uint64_t&) { long_lived(p).last -= 1; }), "outside of its life");
  expect_has(found([](Arena&, Program& p, uint64_t&) { long_lived(p).first += 1; }), "outside of its life");
  expect_has(found([](Arena&, Program& p, uint64_t&) {
               p.buffers[0].last = static_cast<int>(p.instructions.size());
             }),
             "no life");
  expect_has(found([](Arena&, Program& p, uint64_t&) { std::swap(long_lived(p).first, long_lived(p).last); }),
             "");
}

TEST_F(Verify, Alignment) {
  expect_has(found([](Arena&, Program& p, uint64_t&) { long_lived(p).offset += 32; }), "not aligned");
  expect_has(found([](Arena& a, Program&, uint64_t&) { a.persistent[0].offset += 4; }), "not aligned");
}

TEST_F(Verify, Bounds) {
  expect_has(found([](Arena&, Program&, uint64_t& bytes) { bytes -= 64; }), "leaves the arena");
  expect_has(found([](Arena&, Program& p, uint64_t&) { p.base += 64; }), "leaves the arena");
  expect_has(found([](Arena&, Program& p, uint64_t&) { long_lived(p).bytes -= 1; }),
             "larger than its buffer");
  expect_has(found([](Arena& a, Program&, uint64_t&) { a.persistent.back().bytes -= 4; }),
             "larger than its buffer");
  expect_has(
      found([](Arena& a, Program& p, uint64_t&) {
        for (Operand& o : p.operands)
          if (o.persistent && o.buffer >= 0 && a.persistent[o.buffer].owner == MemoryClass::parameters) {
            o.offset += 4;
            return;
          }
      }),
      "larger than its buffer");
}

TEST_F(Verify, Gradients) {
  expect_has(found([](Arena& a, Program& p, uint64_t&) { p.base = a.gradients_begin; }), "inside gradients");
  expect_has(found([](Arena& a, Program& p, uint64_t&) { p.base = a.gradients_begin - 64; }),
             "inside resident memory");
  expect_has(
      found([](Arena& a, Program& p, uint64_t&) { p.base = a.gradients_begin - 64; }, &programs_.evaluate),
      "inside resident memory");
}

TEST_F(Verify, PersistentTensorsOverlap) {
  expect_has(found([](Arena& a, Program&, uint64_t&) { a.persistent[5].offset = a.persistent[4].offset; }),
             "overlap");
  expect_has(
      found([](Arena& a, Program&, uint64_t&) { a.persistent.back().owner = MemoryClass::parameters; }),
      "wrong side");
}

TEST_F(Verify, Operands) {
  expect_has(found([](Arena&, Program& p, uint64_t&) { p.operands[0].buffer = -1; }), "has no memory");
  expect_has(found([](Arena&, Program& p, uint64_t&) { p.instructions[3].inputs -= 1; }),
             "number of operands");
  // The first instruction reads the output of the last one.
  expect_has(found([](Arena&, Program& p, uint64_t&) { p.inputs[Input::tokens] = -1; }),
             "read before it is made");
  expect_has(found([](Arena&, Program& p, uint64_t&) { p.caches.clear(); }, &programs_.decode),
             "read before it is made");
}

// Every operand that reads another tensor of the same bytes, which is alive, is found.
TEST_F(Verify, OperandsOfOtherTensors) {
  const Program& good = programs_.micro_next;
  int exchanged = 0;
  for (int n = 0; n < static_cast<int>(good.instructions.size()); ++n) {
    const Instruction& i = good.instructions[n];
    if (i.ops != 1) continue;
    for (int k = i.first_operand; k < i.first_operand + i.inputs; ++k) {
      const Operand& o = good.operands[k];
      if (o.buffer < 0 || o.persistent) continue;
      for (int other = 0; other < static_cast<int>(good.buffers.size()); ++other) {
        const Buffer &mine = good.buffers[o.buffer], &b = good.buffers[other];
        if (other == o.buffer || b.tensor < 0 || b.bytes < mine.bytes || b.first >= n || b.last < n) continue;
        ++exchanged;
        expect_has(found([&](Arena&, Program& p, uint64_t&) { p.operands[k].buffer = other; }),
                   "is read from the memory of another tensor");
      }
    }
  }
  EXPECT_GT(exchanged, 100);
}

// Tensors that fused ops pass on without memory, and tensors that they pass on in memory.
TEST_F(Verify, FusedOps) {
  graph_ = graph_for(small_gpt2(), Kernels::tensor);
  programs_ = make_programs(graph_, uniform_decisions(graph_, ~0u), 5, 2, 64);
  const Program& micro = programs_.micro_next;
  ASSERT_TRUE(verify(graph_, programs_.arena, micro, programs_.arena_bytes));
  const auto fused = [](Program& p, OpKind kind) -> Instruction& {
    return *std::find_if(p.instructions.begin(), p.instructions.end(),
                         [&](const Instruction& i) { return i.kind == kind && i.ops > 1; });
  };
  const auto operand = [&](Program& p, OpKind kind, int op, int k) -> Operand& {
    return p.operands[op_alone(graph_, fused(p, kind), op).first_operand + k];
  };
  // A product's output must be kept. It loses its memory for GELU alone, then for the product alone. Then
  // GELU's output loses its memory.
  expect_has(
      found([&](Arena&, Program& p, uint64_t&) { operand(p, OpKind::linear, 1, 0).buffer = -1; }, &micro),
      "has no memory");
  expect_has(
      found([&](Arena&, Program& p, uint64_t&) { operand(p, OpKind::linear, 0, 4).buffer = -1; }, &micro),
      "is not stored, but has memory");
  expect_has(
      found([&](Arena&, Program& p, uint64_t&) { operand(p, OpKind::linear, 1, 1).buffer = -1; }, &micro),
      "has no memory");
  // The gradient of GELU's output, which is never stored, gets memory. Then GELU's gradient loses its input.
  expect_has(found(
                 [&](Arena&, Program& p, uint64_t&) {
                   operand(p, OpKind::linear_input_gradient, 1, 1) =
                       operand(p, OpKind::linear_input_gradient, 1, 0);
                 },
                 &micro),
             "is not stored, but has memory");
  expect_has(found([&](Arena&, Program& p,
                       uint64_t&) { operand(p, OpKind::linear_input_gradient, 1, 0).buffer = -1; },
                   &micro),
             "has no memory");
  expect_has(
      found([&](Arena&, Program& p, uint64_t&) { fused(p, OpKind::linear_input_gradient).ops = 4; }, &micro),
      "too many");
  expect_has(
      found([&](Arena&, Program& p, uint64_t&) { fused(p, OpKind::linear_input_gradient).ops = 1; }, &micro),
      "has no memory");
  expect_has(found(
                 [&](Arena&, Program& p, uint64_t&) {
                   p.buffers[fused(p, OpKind::linear_weight_gradient).workspace.buffer].bytes -= 4;
                 },
                 &micro),
             "more scratch memory than it has");
}

// Instructions that do several ops at once.
TEST_F(Verify, JoinedOps) {
  const Program& update = programs_.update;
  const auto joined = [](Program& p) -> Instruction& {
    return *std::find_if(p.instructions.begin(), p.instructions.end(),
                         [](const Instruction& i) { return i.kind == OpKind::adamw && i.ops > 2; });
  };
  expect_has(
      found([&](Arena&, Program& p, uint64_t&) { joined(p).ops = kernels::most_together + 1; }, &update),
      "too many tensors at once");
  expect_has(found([&](Arena&, Program& p, uint64_t&) { joined(p).ops = 0; }, &update),
             "too many tensors at once");
  expect_has(found(
                 [](Arena&, Program& p, uint64_t&) {
                   std::find_if(p.instructions.begin(), p.instructions.end(), [](const Instruction& i) {
                     return i.kind == OpKind::finish_step;
                   })->ops = 2;
                 },
                 &update),
             "too many tensors at once");
  // The instruction names sums of squares instead, which have another number of operands.
  expect_has(found([&](Arena&, Program& p, uint64_t&) { joined(p).op -= joined(p).ops; }, &update),
             "number of operands");
  for (int k : {1, 2}) {  // operands of one of the other ops
    expect_has(found([&](Arena&, Program& p,
                         uint64_t&) { p.operands[op_alone(graph_, joined(p), k).first_operand].buffer = -1; },
                     &update),
               "has no memory");
    expect_has(found(
                   [&](Arena&, Program& p, uint64_t&) {
                     std::swap(p.operands[op_alone(graph_, joined(p), k).first_operand],
                               p.operands[joined(p).first_operand]);
                   },
                   &update),
               "memory of another tensor");
  }
  expect_has(found(
                 [&](Arena&, Program& p, uint64_t&) {
                   const Instruction& sums = p.instructions[0];
                   p.buffers[sums.workspace.buffer].bytes -= 4;
                 },
                 &update),
             "more scratch memory than it has");
  Program fewer = update;
  joined(fewer).ops -= 1;
  const Status status = verify_updates(graph_, {&fewer});
  ASSERT_FALSE(status);
  expect_has(status.error().message, "is not updated once in a step");
}

// Updates inside the backward pass: each is moved before the last op that reads the parameter, or left out,
// or made twice.
TEST_F(Verify, FusedUpdates) {
  int moved = 0;
  for (const Graph& g : fused_graphs()) {
    graph_ = g;
    programs_ = make_programs(g, uniform_decisions(g, 0, 5, 2), 5, 2, 64);
    for (const Program* p : programs_.all()) {
      const Status status = verify(g, programs_.arena, *p, programs_.arena_bytes);
      EXPECT_TRUE(status) << status.error().message;
    }
    EXPECT_TRUE(verify_updates(g, {&programs_.micro_first, &programs_.update}));
    const Program& good = programs_.micro_first;
    for (size_t n = 0; n < good.instructions.size(); ++n) {
      if (!is_update(good.instructions[n].kind)) continue;
      const int parameter = g.op(good.instructions[n].op).outputs[0];
      auto reads = [&](const Instruction& i) {
        const Op& op = g.op(i.op);
        for (size_t k = 0; k < op.inputs.size(); ++k)
          if (const int t = op.inputs[k]; t >= 0 && reads_input(i.kind, k) && g.resolve(t) == parameter)
            return true;
        return false;
      };
      size_t last = n;
      while (last > 0 && !reads(good.instructions[last])) --last;
      const auto at = [&](Program& p, size_t k) {
        return p.instructions.begin() + static_cast<std::ptrdiff_t>(k);
      };
      EXPECT_NE(
          found([&](Arena&, Program& p, uint64_t&) { std::rotate(at(p, last), at(p, n), at(p, n + 1)); },
                &good),
          "");
      ++moved;
      for (bool twice : {false, true}) {
        Program changed = good;
        if (twice) changed.instructions.insert(at(changed, n), good.instructions[n]);
        else changed.instructions.erase(at(changed, n));
        const Status status = verify_updates(g, {&changed, &programs_.update});
        ASSERT_FALSE(status);
        expect_has(status.error().message, "is not updated once in a step");
      }
    }
  }
  EXPECT_GT(moved, 50);
}

TEST_F(Verify, HostMemory) {
  Decisions d = uniform_decisions(graph_, 0, 2, 2);
  d.offload.parts = {graph_.blocks() + 1, 0, graph_.blocks(), graph_.blocks(), graph_.blocks()};
  for (bool overlap : {false, true}) {
    d.offload.overlap = overlap;
    programs_ = make_programs(graph_, d, 5, 2, 64);
    for (const Program* p : programs_.all()) {
      const Status status = verify(graph_, programs_.arena, *p, programs_.arena_bytes);
      EXPECT_TRUE(status) << status.error().message;
    }
    // Leaves out each of the copies, one by one: the judge reports that it is missing.
    int copies = 0;
    for (const Program* base : {&programs_.micro_next, &programs_.update, &programs_.evaluate})
      for (size_t n = 0; n < base->instructions.size(); ++n) {
        if (!is_transfer(base->instructions[n].kind)) continue;
        ++copies;
        EXPECT_NE(found(
                      [&](Arena&, Program& p, uint64_t&) {
                        p.instructions.erase(p.instructions.begin() + static_cast<std::ptrdiff_t>(n));
                      },
                      base),
                  "")
            << base->name << " " << n;
      }
    EXPECT_GT(copies, 100);
    expect_has(found([](Arena& a, Program&, uint64_t&) { a.host[1].offset = a.host[0].offset; }),
               "overlaps in host memory");
    expect_has(found([](Arena& a, Program&, uint64_t&) { a.host_bytes -= 1; }), "leave the host memory");
    expect_has(found([](Arena& a, Program&, uint64_t&) { a.host.back().bytes -= 4; }),
               "larger than its place in host memory");
    // An update works on a slice that was not fetched. Then copied tensors have no place in host memory.
    expect_has(found(
                   [](Arena&, Program& p, uint64_t&) {
                     std::find_if(p.instructions.begin(), p.instructions.end(), [](const Instruction& i) {
                       return i.kind == OpKind::adamw;
                     })->first_element += 256;
                   },
                   &programs_.update),
               "used before it was fetched");
    expect_has(
        found([](Arena& a, Program&, uint64_t&) { a.host_of_tensor.assign(a.host_of_tensor.size(), -1); }),
        "does not lie in host memory");
  }
}

TEST_F(Verify, CopiesDuringAStage) {
  Decisions d = uniform_decisions(graph_, 0, 2, 2);
  d.offload.parts = {graph_.blocks() + 1, 0, graph_.blocks(), graph_.blocks(), graph_.blocks()};
  d.offload.overlap = true;
  programs_ = make_programs(graph_, d, 5, 2, 64);
  int early = 0, changed = 0, twice = 0, given_away = 0;
  for (const Program* base : {&programs_.micro_next, &programs_.update})
    for (size_t n = 0; n < base->instructions.size(); ++n) {
      const Instruction& i = base->instructions[n];
      size_t end = n;
      while (end < base->instructions.size() && base->instructions[end].stage == i.stage) ++end;
      if (!is_transfer(i.kind) || is_transfer(base->instructions[end - 1].kind)) continue;
      const auto buffer = static_cast<size_t>(base->operands[i.first_operand].buffer);
      // Moves a fetch into the stage that needs it, and a store into the stage that changes its tensor.
      (i.kind == OpKind::fetch ? early : changed) += 1;
      expect_has(found(
                     [&](Arena&, Program& p, uint64_t&) {
                       const Instruction& op = p.instructions[end - 1];
                       if (i.kind == OpKind::store)
                         p.operands[op.first_operand + op.inputs] = {static_cast<int>(buffer), false, 0};
                       for (Instruction& other : p.instructions)
                         if (i.kind == OpKind::fetch && other.stage == i.stage + 1) other.stage = i.stage;
                     },
                     base),
                 "in the stage that copies it");
      expect_has(found(
                     [&](Arena&, Program& p, uint64_t&) {
                       const auto begin = p.instructions.begin();
                       std::rotate(begin + static_cast<std::ptrdiff_t>(n),
                                   begin + static_cast<std::ptrdiff_t>(n) + 1,
                                   begin + static_cast<std::ptrdiff_t>(end));
                     },
                     base),
                 "is copied among the ops of a stage");
      const Instruction& next = base->instructions[n + 1];
      if (i.kind == OpKind::store && next.kind == OpKind::fetch) {
        twice += 1;
        expect_has(found(
                       [&](Arena&, Program& p, uint64_t&) {
                         p.instructions[n + 1].op = graph_.fetch_op(graph_.op(i.op).inputs[0]);
                         p.instructions[n + 1].first_element = i.first_element;
                       },
                       base),
                   "in the stage that copies it");
      }
      // Ends the life of the copy's buffer at the copy. This is a mistake if another buffer begins to live
      // later in the stage.
      given_away +=
          found([&](Arena&, Program& p, uint64_t&) { p.buffers[buffer].last = static_cast<int>(n); }, base)
              .find("loses its memory") != std::string::npos;
    }
  EXPECT_GT(early, 50);
  EXPECT_GT(changed, 50);
  EXPECT_GT(twice, 10);
  EXPECT_GT(given_away, 50);
}

TEST_F(Verify, ScratchMemory) {
  auto first_user = [](Program& p) -> Instruction& {
    return *std::find_if(p.instructions.begin(), p.instructions.end(),
                         [](const Instruction& i) { return i.workspace.buffer >= 0; });
  };
  auto scratch = [&](Program& p) -> Buffer& { return p.buffers[first_user(p).workspace.buffer]; };
  expect_has(found([&](Arena&, Program& p, uint64_t&) { scratch(p).bytes -= 1; }), "more scratch memory");
  expect_has(found([&](Arena&, Program& p, uint64_t&) { first_user(p).workspace = {}; }),
             "no scratch memory");
  expect_has(
      found([&](Arena&, Program& p, uint64_t&) { scratch(p).first = scratch(p).last = scratch(p).last + 1; }),
      "outside of its life");
  expect_has(found([&](Arena&, Program& p, uint64_t&) { p.threads = 4; }), "more scratch memory");
}

TEST_F(Verify, FindsMistakesInProgramsOfTables) {
  const Graph g = graph_of(classifier_of(small_deberta("0.1")), 24, Precision::bf16);
  const Programs correct = make_programs(g, uniform_decisions(g, 0, 2, 2), 5, 2, 64);
  ASSERT_TRUE(verify_tables(g, correct.tables, correct.table_gradients, correct.evaluate_tables));
  const auto found = [&](const std::function<void(Graph&, Program&, Program&)>& change) {
    Graph graph = g;
    Program tables = correct.tables, gradients = correct.table_gradients;
    change(graph, tables, gradients);
    const Status status = verify_tables(graph, tables, gradients, correct.evaluate_tables);
    return status ? "" : status.error().message;
  };
  expect_has(found([](Graph&, Program& t, Program&) { t.instructions.pop_back(); }), "is missing");
  expect_has(found([](Graph&, Program& t, Program&) { t.instructions[0].rows -= 1; }), "as a whole");
  expect_has(found([](Graph&, Program& t, Program&) { std::swap(t.instructions[0], t.instructions[1]); }),
             "in order");
  expect_has(found([](Graph&, Program&, Program& p) { p.instructions.pop_back(); }), "is missing");
  EXPECT_FALSE(verify_tables(g, correct.tables, correct.table_gradients, {}));
  expect_has(found([](Graph&, Program&, Program& p) { p.instructions.push_back(p.instructions.back()); }),
             "in order");
  // All other mistakes are of the flag, in either direction.
  for (size_t k = 0; k < correct.table_gradients.instructions.size(); ++k) {
    const Instruction& i = correct.table_gradients.instructions[k];
    const Op& op = g.op(i.op);
    const bool fills = std::any_of(op.outputs.begin(), op.outputs.end(),
                                   [&](int t) { return t >= 0 && g.at(t).role == Role::gradient; });
    if (i.op < g.first_table_gradient_op() || !fills) continue;
    expect_has(found([&](Graph&, Program&, Program& p) { p.instructions[k].accumulate ^= true; }),
               "adds to a gradient that nothing filled");
  }
  expect_has(found([&](Graph& graph, Program&, Program&) {
               for (Op& op : graph.table_gradient_ops)
                 if (reads(op, g.table_gradients[0].gradient)) op.inputs[0] = op.outputs[0];
             }),
             "is not carried on to parameters");
}

TEST_F(Verify, FindsMistakesInKeptRows) {
  Graph g = graph_of(with_vocabulary(small_qwen2(), 1500), 24);
  ASSERT_TRUE(may_keep_rows(g, 5));
  keep_rows(g, 5);
  EXPECT_TRUE(verify_kept_rows(g, 5));
  EXPECT_FALSE(verify_kept_rows(g, 6));
  const auto is_refused = [&](const std::function<void(Graph&)>& change) {
    Graph graph = g;
    change(graph);
    return !verify_kept_rows(graph, 5);
  };
  const auto keep = [](Graph& graph) -> Op& {
    return *std::find_if(graph.gradient_ops.begin(), graph.gradient_ops.end(),
                         [](const Op& op) { return op.kind == OpKind::keep_rows; });
  };
  EXPECT_TRUE(is_refused([&](Graph& graph) { graph.gradient_ops.push_back(keep(graph)); }));
  EXPECT_TRUE(is_refused([&](Graph& graph) { keep(graph).kind = OpKind::embedding_gradient; }));
  EXPECT_TRUE(is_refused([&](Graph& graph) { keep(graph).inputs[0] = graph.inputs[Input::targets]; }));
  EXPECT_TRUE(is_refused([&](Graph& graph) { std::swap(keep(graph).outputs[0], keep(graph).outputs[1]); }));
  EXPECT_TRUE(is_refused([&](Graph& graph) { graph.table_gradient_ops.clear(); }));
  EXPECT_TRUE(is_refused(
      [&](Graph& graph) { graph.table_gradient_ops.push_back(graph.table_gradient_ops.front()); }));
  EXPECT_TRUE(is_refused([&](Graph& graph) { graph.table_gradient_ops[0].accumulates = false; }));
  EXPECT_TRUE(is_refused(
      [&](Graph& graph) { graph.table_gradient_ops[0].outputs[0] = graph.gradients[0].gradient; }));
}

// The gradient of a table with one use is formed in slices.
TEST_F(Verify, FindsMistakesInFormedGradients) {
  Graph g = graph_of(with_vocabulary(small_llama(), 1500), 24);
  ASSERT_TRUE(may_keep_rows(g, 5));
  keep_rows(g, 5);
  EXPECT_TRUE(verify_kept_rows(g, 5));
  const auto is_refused = [&](const std::function<void(Graph&)>& change) {
    Graph graph = g;
    change(graph);
    return !verify_kept_rows(graph, 5);
  };
  EXPECT_TRUE(is_refused([&](Graph& graph) { graph.update_ops.pop_back(); }));
  EXPECT_TRUE(is_refused([&](Graph& graph) { graph.update_ops.back().accumulates = true; }));
  EXPECT_TRUE(is_refused([&](Graph& graph) { graph.update_ops.push_back(graph.update_ops.back()); }));
  EXPECT_TRUE(is_refused([&](Graph& graph) { graph.kept.forming_op -= 1; }));
  const ParameterGradient& other = *std::find_if(
      g.gradients.begin(), g.gradients.end(), [&](const auto& one) { return one.gradient != g.kept.formed; });
  EXPECT_TRUE(is_refused([&](Graph& graph) { graph.kept.formed = other.gradient; }));
  EXPECT_TRUE(is_refused([&](Graph& graph) { graph.tensors[graph.kept.formed].role = Role::gradient; }));
  EXPECT_TRUE(is_refused([&](Graph& graph) { graph.update_ops.back().outputs[0] = other.gradient; }));

  const Arena arena = make_arena(g, 64);
  const Program correct = build_update(g, arena, 1);
  ASSERT_TRUE(verify_updates(g, {&correct}));
  std::vector<size_t> formed, readers;  // instructions
  for (size_t n = 0; n < correct.instructions.size(); ++n) {
    const Instruction& i = correct.instructions[n];
    if (i.op == g.kept.forming_op) formed.push_back(n), readers.push_back(n + 1);
  }
  ASSERT_EQ(formed.size(), 12u);  // 6 slices, for the norm and for the update
  const auto is_wrong = [&](const std::function<void(std::vector<Instruction>&)>& change) {
    Program p = correct;
    change(p.instructions);
    return !verify_updates(g, {&p});
  };
  EXPECT_FALSE(is_wrong([](std::vector<Instruction>&) {}));
  for (const size_t n : {formed[0], formed[5], formed[7], readers[1], readers[8]}) {
    EXPECT_TRUE(is_wrong([&](auto& list) { list.erase(list.begin() + static_cast<std::ptrdiff_t>(n)); }));
    EXPECT_TRUE(is_wrong([&](auto& list) { list[n].first_element += 48; }));
    EXPECT_TRUE(is_wrong([&](auto& list) { list[n].elements -= 48; }));
  }
  EXPECT_TRUE(is_wrong([&](auto& list) { list[formed[2]].accumulate = true; }));
  EXPECT_TRUE(is_wrong([&](auto& list) {  // two slices in the wrong order
    for (const auto& of : {formed, readers}) std::swap(list[of[1]], list[of[2]]);
  }));
  EXPECT_TRUE(is_wrong([&](auto& list) {  // the last slice of the norm is left out
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(formed[5]),
               list.begin() + static_cast<std::ptrdiff_t>(readers[5]) + 1);
  }));
  EXPECT_TRUE(is_wrong([&](auto& list) {  // whole rows, but a part of a chunk
    for (const auto& of : {formed, readers}) {
      list[of[0]].elements -= 48;
      list[of[1]].first_element -= 48, list[of[1]].elements += 48;
    }
  }));
}

}  // namespace
}  // namespace stw
