#include "planner/program/verify.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "planner/graph/optimizer.h"

namespace stw {

namespace {

Error wrong(const Program& program, const std::string& what) {
  return {Code::internal, "plan: program " + program.name + ": " + what};
}

std::string name_of(const Graph& graph, const Buffer& b) {
  return b.tensor < 0 ? "scratch memory" : graph.at(b.tensor).name;
}

// Sweeps over time. Live buffers are sorted by offset, so a new buffer is compared only with its neighbours.
Status check_overlap(const Graph& graph, const Program& program) {
  std::vector<int> by_start(program.buffers.size());
  for (size_t i = 0; i < by_start.size(); ++i) by_start[i] = static_cast<int>(i);
  auto at = [&](int i) -> const Buffer& { return program.buffers[i]; };
  std::sort(by_start.begin(), by_start.end(), [&](int a, int b) { return at(a).first < at(b).first; });
  std::multimap<int, int> ends;   // last -> buffer
  std::map<uint64_t, int> alive;  // offset -> buffer
  for (int i : by_start) {
    if (at(i).bytes == 0) continue;
    while (!ends.empty() && ends.begin()->first < at(i).first) {
      alive.erase(at(ends.begin()->second).offset);
      ends.erase(ends.begin());
    }
    auto next = alive.lower_bound(at(i).offset);
    const bool meets_next = next != alive.end() && next->first < at(i).offset + at(i).bytes;
    const bool meets_previous =
        next != alive.begin() && std::prev(next)->first + at(std::prev(next)->second).bytes > at(i).offset;
    if (meets_next || meets_previous) {
      const Buffer& other = at(meets_next ? next->second : std::prev(next)->second);
      return wrong(program, name_of(graph, at(i)) + " overlaps " + name_of(graph, other));
    }
    alive[at(i).offset] = i;
    ends.insert({at(i).last, i});
  }
  return ok();
}

// Follows the tensors that lie in host memory: the parts of them that buffers hold, and the parts that must
// still be stored.
class HostReplay {
 public:
  HostReplay(const Graph& graph, const Arena& arena, const Program& program)
      : graph_(graph), arena_(arena), program_(program), holds_(program.buffers.size()) {}

  Status step(const Instruction& i) {  // an instruction with one op
    const Op& op = graph_.op(i.op);
    const bool copies = is_transfer(i.kind);
    for (int k = 0; k < i.inputs + i.outputs; ++k) {
      const bool is_output = k >= i.inputs;
      const int tensor = is_output ? op.outputs[k - i.inputs] : op.inputs[k];
      const Operand& o = program_.operands[i.first_operand + k];
      if (o.buffer < 0 || o.persistent) continue;
      const bool is_on_host = arena_.on_host(tensor);
      if (copies && !is_on_host)
        return wrong(program_, graph_.at(tensor).name + " is copied, but does not lie in host memory");
      const Part part{tensor, i.first_element, i.elements};
      Part& holds = holds_[o.buffer];
      if (is_on_host && graph_.at(tensor).per_sample) {  // a block's saved input
        if (i.kind == OpKind::store) stored_.insert(tensor);
        if (i.kind == OpKind::fetch && !stored_.count(tensor))
          return wrong(program_, graph_.at(tensor).name + " is fetched before it was stored");
      } else if (is_on_host && i.kind == OpKind::fetch) {
        if (changed_.count(part))
          return wrong(program_, graph_.at(tensor).name + " is fetched before it was stored");
        holds = part;
      } else if (is_on_host) {
        const bool changes = is_output, reads = !changes || i.accumulate || i.phase == Phase::update;
        if (reads && holds != part)
          return wrong(program_, graph_.at(tensor).name + " is used before it was fetched");
        holds = part;
        if (changes) changed_.insert(part);
        if (i.kind == OpKind::store) changed_.erase(part);
      } else if (is_output) {
        holds = {};
      }
    }
    return ok();
  }
  Status finish() const {
    if (changed_.empty()) return ok();
    return wrong(program_, graph_.at(changed_.begin()->tensor).name + " is never stored");
  }

 private:
  struct Part {
    int tensor = -1;
    int64_t first_element = 0, elements = 0;
    auto operator<=>(const Part&) const = default;
  };
  const Graph& graph_;
  const Arena& arena_;
  const Program& program_;
  std::vector<Part> holds_;  // by buffer
  std::set<Part> changed_;
  std::set<int> stored_;
};

// In a stage, fetches, stores and ops run concurrently. A copy must not touch memory that another instruction
// of the stage changes.
Status check_stages(const Graph& graph, const Program& program) {
  const std::vector<Instruction>& list = program.instructions;
  auto operand = [&](const Instruction& i, int k) -> const Operand& {
    return program.operands[i.first_operand + k];
  };
  auto copied = [&](const Instruction& i) {
    return graph.op(i.op).outputs.empty() ? graph.op(i.op).inputs[0] : graph.op(i.op).outputs[0];
  };
  // Whether both work on overlapping parts of a tensor.
  auto overlap = [](const Instruction& a, const Instruction& b) {
    return a.elements == 0 || b.elements == 0 ||
           (a.first_element < b.first_element + b.elements && b.first_element < a.first_element + a.elements);
  };
  for (const auto& [first, ops, end] : stages_of(program)) {
    for (size_t c = first; c < ops; ++c) {
      const Instruction& copy = list[c];
      const bool fetches = copy.kind == OpKind::fetch;
      const int buffer = operand(copy, 0).buffer, tensor = copied(copy);
      const int last = program.buffers[buffer].last;
      auto begins_later = [&](const Operand& o) {
        return o.buffer >= 0 && !o.persistent && program.buffers[o.buffer].first > last;
      };
      for (size_t n = c + 1; n < end; ++n) {
        const Instruction& other = list[n];
        bool reuses_memory = begins_later(other.workspace);
        for (int of = 0; of < other.ops; ++of) {
          const Instruction one = op_alone(graph, other, of);
          for (int k = 0; k < one.inputs + one.outputs; ++k) reuses_memory |= begins_later(operand(one, k));
        }
        if (reuses_memory)
          return wrong(program, graph.at(tensor).name + " loses its memory in the stage that copies it");
        bool conflicts = is_transfer(other.kind) && copied(other) == tensor &&
                         (!fetches || other.kind == OpKind::store) && overlap(copy, other);
        for (int of = 0; of < other.ops; ++of) {
          const Instruction one = op_alone(graph, other, of);
          for (int k = fetches ? 0 : one.inputs; k < one.inputs + one.outputs; ++k)
            conflicts |= operand(one, k).buffer == buffer && !operand(one, k).persistent;
        }
        if (conflicts) return wrong(program, graph.at(tensor).name + " is used in the stage that copies it");
      }
    }
    // The planner's time assumes that copies run concurrently with ops, so no copy may come among the ops.
    for (size_t k = ops; k < end && in_stages(program); ++k)
      if (is_transfer(list[k].kind))
        return wrong(program, graph.at(copied(list[k])).name + " is copied among the ops of a stage");
  }
  return ok();
}

// Checks that the operands of every instruction are written before they are read, have memory of their own,
// and are still there.
class OperandReplay {
 public:
  OperandReplay(const Graph& graph, const Arena& arena, const Program& program)
      : graph_(graph),
        arena_(arena),
        program_(program),
        host_(graph, arena, program),
        holds_(program.buffers.size(), -1),
        updated_(graph.tensors.size()) {
    for (size_t k = 0; k < input_count; ++k)
      if (const int b = program.inputs.of[k]; b >= 0) holds_[b] = graph.inputs.of[k];
    for (int b : program.caches) holds_[b] = program.buffers[b].tensor;
  }

  Status step(int n) {
    const Instruction& i = program_.instructions[n];
    bool is_fused = i.ops > 1;
    for (int k = 1; k < i.ops && is_fused; ++k) is_fused = graph_.op(i.op + k).fused;
    if (i.ops != 1 && !is_fused &&
        (i.ops < 1 || i.ops > kernels::most_together || !op_row(i.kind).is_multi_tensor))
      return wrong(program_, name(i) + " updates too many tensors at once");
    passed_on_ = -1;
    taken_.clear();
    uint64_t scratch = 0;
    for (int k = 0; k < i.ops; ++k) {
      const Instruction one = op_alone(graph_, i, k);
      if (is_fused && k == 0 && program_.operands[one.first_operand + one.inputs].buffer < 0)
        passed_on_ = graph_.op(i.op).outputs[0];
      STW_TRY(step_of_one(n, one));
      scratch = size_add(scratch, op_row(one.kind).workspace(graph_, graph_.op(one.op), extent(i)));
    }
    if (scratch == 0) return ok();
    if (i.workspace.buffer < 0) return wrong(program_, name(i) + " has no scratch memory");
    const Buffer& b = program_.buffers[i.workspace.buffer];
    if (i.workspace.offset + scratch > b.bytes)
      return wrong(program_, name(i) + " needs more scratch memory than it has");
    if (n < b.first || n > b.last)
      return wrong(program_, name(i) + " uses scratch memory outside of its life");
    return ok();
  }
  Status finish() const { return host_.finish(); }

 private:
  static std::string name(const Instruction& i) { return op_row(i.kind).name; }
  Extent extent(const Instruction& i) const { return extent_of(graph_, i, program_.threads); }

  Status step_of_one(int n, const Instruction& i) {
    const Op& op = graph_.op(i.op);
    if (op.kind != i.kind || i.inputs != static_cast<int>(op.inputs.size()) ||
        i.outputs != static_cast<int>(op.outputs.size()))
      return wrong(program_, name(i) + " has a wrong number of operands");
    STW_TRY(host_.step(i));
    for (int k = 0; k < i.inputs && !is_transfer(i.kind); ++k) {
      const int t = op.inputs[k];
      if (t >= 0 && reads_input(i.kind, static_cast<size_t>(k)) && updated_[graph_.resolve(t)])
        return wrong(program_, graph_.at(t).name + " is read after it was updated");
    }
    if (is_update(i.kind)) updated_[op.outputs[0]] = true;
    for (int k = 0; k < i.inputs + i.outputs; ++k) {
      const Operand& o = program_.operands[i.first_operand + k];
      const int tensor = k < i.inputs ? op.inputs[k] : op.outputs[k - i.inputs];
      if (o.buffer < 0) {
        const bool only_shape =
            k < i.inputs && !reads_input(i.kind, static_cast<size_t>(k)) && arena_.on_host(tensor);
        if (tensor >= 0 && !only_shape && tensor != passed_on_)
          return wrong(program_, graph_.at(tensor).name + " has no memory");
        continue;
      }
      if (o.persistent && arena_.of_tensor[tensor] != o.buffer)
        return wrong(program_, graph_.at(tensor).name + " is read from the memory of another tensor");
      const Buffer& b = (o.persistent ? arena_.persistent : program_.buffers)[o.buffer];
      uint64_t bytes = operand_bytes(graph_, tensor, extent(i));
      if (i.kind == OpKind::square_sum && k >= i.inputs) bytes = sizeof(double);
      if (o.offset + bytes > b.bytes)
        return wrong(program_, graph_.at(tensor).name + " is larger than its buffer");
      if (o.persistent) continue;
      if (n < b.first || n > b.last)
        return wrong(program_, graph_.at(tensor).name + " is used outside of its life");
      if (tensor == passed_on_)
        return wrong(program_, graph_.at(tensor).name + " is not stored, but has memory");
      if (k >= i.inputs) {
        taken_.emplace_back(o.buffer, holds_[o.buffer]);
        holds_[o.buffer] = tensor;
      } else if (holds_[o.buffer] < 0) {
        return wrong(program_, graph_.at(tensor).name + " is read before it is made");
      } else if (holds_[o.buffer] != tensor &&
                 std::find(taken_.begin(), taken_.end(), std::pair{o.buffer, tensor}) == taken_.end()) {
        return wrong(program_, graph_.at(tensor).name + " is read from the memory of another tensor");
      }
    }
    return ok();
  }

  const Graph& graph_;
  const Arena& arena_;
  const Program& program_;
  HostReplay host_;
  std::vector<int> holds_;  // by buffer: the tensor that was written to it last; -1: none
  // Buffers that the instruction writes, with the tensors that they held before. A kernel that computes fused
  // ops reads the tensor before it writes.
  std::vector<std::pair<int, int>> taken_;
  std::vector<bool> updated_;  // by parameter
  int passed_on_ = -1;         // the tensor that fused ops of an instruction pass on without memory
};

Status check_operands(const Graph& graph, const Arena& arena, const Program& program) {
  OperandReplay replay(graph, arena, program);
  for (int n = 0; n < static_cast<int>(program.instructions.size()); ++n) STW_TRY(replay.step(n));
  return replay.finish();
}

}  // namespace

// Checks that every use of a parameter has a gradient, and that the parameter's norm and update read each of
// these gradients exactly once, in op order.
static Status verify_gradients(const Graph& graph) {
  // gradients_of has an entry for each parameter; held_by and parameter_of have one for each gradient. An
  // entry of held_by lists, in op order, the gradients whose sum the gradient's buffer holds.
  std::vector<std::vector<int>> gradients_of(graph.tensors.size()), held_by(graph.tensors.size());
  std::vector<int> parameter_of(graph.tensors.size(), -1), squared(graph.tensors.size()),
      applied(graph.tensors.size());
  for (const ParameterGradient& g : graph.gradients) {
    gradients_of[g.parameter].push_back(g.gradient);
    held_by[g.gradient] = {g.gradient};
    parameter_of[g.gradient] = g.parameter;
  }
  constexpr size_t most_added = 2;  // gradients that the kernels of norm and update can add up
  for (const Op& op : graph.update_ops) {
    const bool is_sum = op.kind == OpKind::gradient_sum, squares = op.kind == OpKind::square_sum;
    if (!is_sum && !squares && !is_update(op.kind)) continue;
    std::vector<int> all;
    for (size_t k = 0; k < (is_sum ? op.inputs.size() : std::min(op.inputs.size(), most_added)); ++k)
      if (const int t = op.inputs[k]; t >= 0) all.insert(all.end(), held_by[t].begin(), held_by[t].end());
    if (is_sum) {
      held_by[op.outputs[0]] = std::move(all);
      continue;
    }
    const int p = squares ? parameter_of[op.inputs[0]] : op.outputs[0];
    if (p < 0 || all != gradients_of[p]) continue;
    (squares ? squared : applied)[p] += 1;
  }
  for (const ParameterGradient& g : graph.gradients)
    if (squared[g.parameter] != 1 || applied[g.parameter] != 1)
      return Error{Code::internal,
                   "plan: " + graph.at(g.parameter).name + ": the gradients of its " +
                       std::to_string(gradients_of[g.parameter].size()) +
                       " uses are not added up once, in order, for the norm and for the update"};
  return ok();
}

// Checks that each sum of gradients is computed once, as a whole and in order, before an instruction reads
// it.
static Status verify_sums(const Graph& graph, const std::vector<const Program*>& step) {
  std::vector<int> waits_for(graph.tensors.size());  // by gradient: sums that are not computed yet
  for (const Op& op : graph.update_ops)
    if (op.kind == OpKind::gradient_sum) waits_for[op.outputs[0]] += 1;
  int last = -1;
  for (const Program* program : step)
    for (const Instruction& i : program->instructions) {
      if (i.kind == OpKind::gradient_sum) {
        const int t = graph.op(i.op).outputs[0];
        if (i.op <= last || i.elements > 0 || i.ops != 1)
          return wrong(*program, graph.at(t).name + " is not added up once, as a whole and in order");
        waits_for[t] -= 1;
        last = i.op;
      } else if (i.kind == OpKind::square_sum || is_update(i.kind)) {
        for (int op = i.op; op < i.op + i.ops; ++op)
          for (int t : graph.op(op).inputs)
            if (t >= 0 && waits_for[t] > 0)
              return wrong(*program,
                           graph.at(t).name + " is read before the gradients of all uses are added up in it");
      }
    }
  return ok();
}

// Checks that each op that reads a formed gradient does so slice after slice, from the first element to the
// last, and that each slice is formed right before. Where one slice ends and the next one begins, no chunk of
// the sums of squares is cut.
static Status verify_formed(const Graph& graph, const std::vector<const Program*>& step) {
  const int formed = graph.kept.formed;
  if (formed < 0) return ok();
  const auto all = static_cast<int64_t>(graph.at(formed).shape.elements());
  std::vector<int64_t> done(graph.update_ops.size());  // elements, by op
  for (const Program* program : step)
    for (size_t n = 0; n < program->instructions.size(); ++n) {
      const Instruction& i = program->instructions[n];
      if (i.op < graph.first_update_op() || i.op >= graph.first_evaluate_op() ||
          i.op == graph.kept.forming_op)
        continue;
      bool reads_it = false;
      for (int op = i.op; op < i.op + i.ops; ++op) reads_it |= reads(graph.op(op), formed);
      if (!reads_it) continue;
      const Instruction* const before = n > 0 ? &program->instructions[n - 1] : nullptr;
      int64_t& next = done[i.op - graph.first_update_op()];
      const bool is_whole = i.elements % graph.at(formed).shape.last() == 0 &&
                            (i.elements % kernels::square_chunk == 0 || next + i.elements == all);
      if (i.ops != 1 || i.elements <= 0 || i.first_element != next || !is_whole || !before ||
          before->op != graph.kept.forming_op || before->accumulate ||
          before->first_element != i.first_element || before->elements != i.elements)
        return wrong(*program,
                     graph.at(formed).name + " is not formed and read in slices, one after the other");
      next += i.elements;
    }
  for (size_t k = 0; k < done.size(); ++k)
    if (reads(graph.update_ops[k], formed) && done[k] != all)
      return Error{Code::internal, "plan: " + graph.at(formed).name + " is not read as a whole"};
  return ok();
}

Status verify_updates(const Graph& graph, const std::vector<const Program*>& step) {
  STW_TRY(verify_gradients(graph));
  STW_TRY(verify_sums(graph, step));
  STW_TRY(verify_formed(graph, step));
  std::vector<int64_t> left(graph.tensors.size());  // elements that no update has changed yet
  for (int t = 0; t < static_cast<int>(graph.tensors.size()); ++t)
    if (graph.owns_bytes(t) && graph.at(t).trainable)
      left[t] = static_cast<int64_t>(graph.at(t).shape.elements());
  for (const Program* program : step)
    for (const Instruction& i : program->instructions) {
      if (!is_update(i.kind)) continue;
      for (int op = i.op; op < i.op + i.ops; ++op) {
        const int p = graph.op(op).outputs[0];
        left[p] -= i.elements > 0 ? i.elements : static_cast<int64_t>(graph.at(p).shape.elements());
      }
    }
  for (size_t t = 0; t < left.size(); ++t)
    if (left[t] != 0)
      return Error{Code::internal, "plan: " + graph.tensors[t].name + " is not updated once in a step"};
  return ok();
}

// Checks that the program runs ops [first, first + count) once, as wholes and in order.
static Status verify_order(const Graph& graph, const Program& program, int first, int count) {
  int next = first;
  for (const Instruction& i : program.instructions) {
    if (i.op < first || i.op >= first + count) continue;
    if (i.op != next || i.ops != 1 || i.elements > 0 || i.rows != graph.rows_of(graph.op(i.op)))
      return wrong(program, std::string(op_row(i.kind).name) + " does not run once, as a whole and in order");
    ++next;
  }
  if (next == first + count) return ok();
  return wrong(program, std::string(op_row(graph.op(next).kind).name) + " is missing");
}

Status verify_tables(const Graph& graph, const Program& tables, const Program& gradients,
                     const Program& evaluate) {
  const auto count = [](const std::vector<Op>& ops) { return static_cast<int>(ops.size()); };
  STW_TRY(verify_order(graph, tables, graph.first_table_op(), count(graph.table_ops)));
  STW_TRY(verify_order(graph, gradients, graph.first_table_gradient_op(), count(graph.table_gradient_ops)));
  STW_TRY(verify_order(graph, evaluate, graph.first_evaluate_table_op(), count(graph.evaluate_table_ops)));
  std::vector<bool> is_filled(graph.tensors.size()), is_computed(graph.tensors.size());
  for (const Op& op : graph.table_ops)
    for (int t : op.outputs) is_computed[t] = true;
  for (const Op& op : graph.ops)
    for (int t : op.inputs)
      if (t >= 0 && !graph.at(t).per_sample && graph.at(t).rows > 0 && !is_computed[t])
        return wrong(tables, graph.at(t).name + " is not computed");
  for (const Op& op : graph.gradient_ops)
    for (int t : op.outputs)
      if (t >= 0) is_filled[t] = true;
  for (const TableGradient& g : graph.table_gradients)
    if (!is_filled[g.gradient] ||
        std::none_of(graph.table_gradient_ops.begin(), graph.table_gradient_ops.end(),
                     [&](const Op& op) { return reads(op, g.gradient); }))
      return wrong(gradients, graph.at(g.gradient).name + " is not carried on to parameters");
  for (const Instruction& i : gradients.instructions) {
    if (i.op < graph.first_table_gradient_op()) continue;  // an op on tables that runs again
    for (int t : graph.op(i.op).outputs) {
      if (t < 0 || graph.at(t).role != Role::gradient) continue;
      if (i.accumulate != is_filled[t])
        return wrong(gradients,
                     graph.at(t).name + " adds to a gradient that nothing filled, or overwrites one");
      is_filled[t] = true;
    }
  }
  return ok();
}

Status verify_kept_rows(const Graph& graph, int64_t samples) {
  const auto fills = [&](const Op& op) {
    return std::any_of(op.outputs.begin(), op.outputs.end(),
                       [&](int t) { return t >= 0 && (t == graph.kept.ids || t == graph.kept.rows); });
  };
  const auto sums = [&](const Op& op) { return op.kind == OpKind::kept_rows_gradient; };
  const auto one = [](const std::vector<Op>& ops, const auto& is) -> const Op* {
    const auto at = std::find_if(ops.begin(), ops.end(), is);
    return at != ops.end() && std::find_if(at + 1, ops.end(), is) == ops.end() ? &*at : nullptr;
  };
  if (!graph.kept.exist()) return ok();
  const Error error{Code::internal,
                    "plan: the gradients of all embedded tokens are not kept once, and summed "
                    "once for the gradient of the token table"};
  const bool forms = graph.kept.formed >= 0;
  const Op *const keep = one(graph.gradient_ops, fills), *const sum = one(forms ? graph.update_ops
                                                                                : graph.table_gradient_ops,
                                                                          sums);
  if (!keep || keep->kind != OpKind::keep_rows || !sum || sum->accumulates == forms) return error;
  if (forms &&
      (sum != &graph.op(graph.kept.forming_op) || sum->outputs != std::vector<int>{graph.kept.formed} ||
       graph.at(graph.kept.formed).role == Role::gradient))
    return error;
  const int tokens = graph.inputs[Input::tokens];
  const std::vector<int> kept{graph.kept.ids, graph.kept.rows};
  if (keep->inputs[0] != tokens || keep->outputs != kept || sum->inputs != kept) return error;
  for (const auto& [all, of_sample] : {std::pair{graph.kept.ids, tokens}, {graph.kept.rows, keep->inputs[1]}})
    if (graph.at(all).bytes(1) != graph.at(of_sample).bytes(samples)) return error;
  const auto embeds = [&](const Op& op) { return op.kind == OpKind::embedding && op.inputs[0] == tokens; };
  const Op* const embedding = one(graph.ops, embeds);
  const auto gradient =
      std::find_if(graph.gradients.begin(), graph.gradients.end(),
                   [&](const ParameterGradient& g) { return g.gradient == sum->outputs[0]; });
  if (!embedding || gradient == graph.gradients.end() ||
      gradient->parameter != graph.resolve(embedding->inputs[1]))
    return error;
  return ok();
}

Status verify(const Graph& graph, const Arena& arena, const Program& program, uint64_t arena_bytes) {
  uint64_t end = 0;
  for (const Buffer& b : arena.host) {
    if (b.offset < end || b.offset % arena.alignment != 0)
      return wrong(program, name_of(graph, b) + " overlaps in host memory, or is not aligned");
    if (b.bytes < graph.at(b.tensor).bytes(program.samples))
      return wrong(program, name_of(graph, b) + " is larger than its place in host memory");
    end = b.offset + b.bytes;
  }
  if (end > arena.host_bytes) return wrong(program, "tensors leave the host memory");
  end = 0;
  for (const Buffer& b : arena.persistent) {
    if (b.offset < end) return wrong(program, "persistent tensors overlap at " + name_of(graph, b));
    if (b.offset % arena.alignment != 0) return wrong(program, name_of(graph, b) + " is not aligned");
    end = b.offset + b.bytes;
    if (b.owner == MemoryClass::gradients ? b.offset < arena.gradients_begin : end > arena.gradients_begin)
      return wrong(program, name_of(graph, b) + " lies on the wrong side of the gradients");
  }
  if (end > arena_bytes || end > arena.gradients_end)
    return wrong(program, "persistent tensors leave the arena");
  if (program.base < arena.gradients_begin)
    return wrong(program, "transient memory begins inside resident memory");
  bool gradients_used = false;
  for (const Operand& o : program.operands)
    gradients_used |=
        o.persistent && o.buffer >= 0 && arena.persistent[o.buffer].owner == MemoryClass::gradients;
  if (gradients_used && program.base < arena.gradients_end)
    return wrong(program, "transient memory begins inside gradients");
  for (const Buffer& b : program.buffers) {
    if (b.offset % arena.alignment != 0) return wrong(program, name_of(graph, b) + " is not aligned");
    if (b.offset < program.base || b.offset + b.bytes > arena_bytes)
      return wrong(program, name_of(graph, b) + " leaves the arena");
    if (b.first > b.last || b.last >= static_cast<int>(program.instructions.size()))
      return wrong(program, name_of(graph, b) + " has no life inside the program");
  }
  STW_TRY(check_overlap(graph, program));
  STW_TRY(check_stages(graph, program));
  return check_operands(graph, arena, program);
}

}  // namespace stw
