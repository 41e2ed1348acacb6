#include "planner/program/emitter.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "planner/graph/fuse.h"

namespace stw {

Emitter::Emitter(const Graph& graph, const Arena& arena, int threads, int64_t samples, int64_t rows,
                 size_t ops)
    : graph_(graph),
      arena_(arena),
      threads_(threads),
      samples_(samples),
      rows_(rows),
      value_(graph.tensors.size(), -1),
      tiled_(graph.tensors.size()) {
  program_.samples = samples;
  program_.threads = threads;
  program_.instructions.reserve(ops > 0 ? ops : graph.ops.size() * 2 + graph.gradient_ops.size());
  program_.operands.reserve(program_.instructions.capacity() * 6);
  program_.buffers.reserve(program_.instructions.capacity() * 2);
}

// The byte at which the current slice begins in a tensor that lies in the arena as a whole.
uint64_t Emitter::part_begin(int tensor) const {
  return elements_ > 0 && has_slices(graph_, tensor) ? graph_.at(tensor).part_bytes(first_element_) : 0;
}

std::vector<int> Emitter::host_operands(int index, Phase phase, bool accumulate) const {
  std::vector<int> list;
  if (!arena_.offload.any()) return list;  // the usual case
  const Op& op = graph_.op(index);
  if (is_transfer(op.kind)) return list;
  for (size_t k = 0; k < op.inputs.size(); ++k)
    if (on_host(op.inputs[k]) && reads_input(op.kind, k)) list.push_back(op.inputs[k]);
  // Tensors that the op adds to or changes.
  if (accumulate || phase == Phase::update)
    for (int t : op.outputs)
      if (on_host(t) && !graph_.at(t).per_sample) list.push_back(t);
  return list;
}

void Emitter::fetch(int tensor, Phase phase) {
  emit(graph_.fetch_op(tensor), phase);
  copied_.push_back(buffer_of(tensor));
}

void Emitter::store(int tensor, Phase phase) {
  emit(graph_.store_op(tensor), phase);
  copied_.push_back(buffer_of(tensor));
}

void Emitter::end_stage() {
  for (int b : copied_) {
    hold(b);
    copied_in_[b] = stage_;
  }
  copied_.clear();
  stage_ += 1;
}

void Emitter::hold(int buffer) {
  Buffer& b = program_.buffers[buffer];
  b.last = std::max(b.last, instruction_count() - 1);
}

int Emitter::new_value(int tensor, int64_t rows, Phase phase) {
  const Tensor& t = graph_.at(tensor);
  Buffer b;
  b.tensor = tensor;
  b.bytes = holds_part(tensor) || (t.per_sample && rows_ > 0)
                ? size_mul(t.row_bytes(), static_cast<uint64_t>(rows))
            : elements_ > 0 && has_slices(graph_, tensor) ? t.part_bytes(elements_)
                                                          : t.bytes(samples_);
  b.first = b.last = static_cast<int>(program_.instructions.size());
  b.owner = t.role == Role::input ? MemoryClass::inputs : MemoryClass::transient;
  program_.buffers.push_back(b);
  made_in_.push_back(phase);
  return value_[tensor] = static_cast<int>(program_.buffers.size()) - 1;
}

int Emitter::input(int tensor) { return new_value(tensor, all_rows(tensor), Phase::forward); }

void Emitter::inputs() {
  for (int t : graph_.all_inputs()) input(t);
}

Operand Emitter::use(int tensor, const RowRange& rows, Phase phase) {
  if (tensor < 0) return {};
  if (int fixed = arena_.of_tensor[tensor]; fixed >= 0) return {fixed, true, part_begin(tensor)};
  const int v = value_[tensor];
  assert(v >= 0 && "an operand is read before it is computed");
  Buffer& b = program_.buffers[v];
  b.last = static_cast<int>(program_.instructions.size());
  if (phase != Phase::forward && made_in_[v] == Phase::forward && b.owner == MemoryClass::transient)
    b.owner = MemoryClass::saved_activations;
  const bool part = graph_.at(tensor).per_sample && !holds_part(tensor) && rows.part;
  return {v, false, part ? graph_.at(tensor).row_bytes() * static_cast<uint64_t>(rows.begin) : 0};
}

Operand Emitter::define(int tensor, const RowRange& rows, Phase phase, int64_t element) {
  if (tensor < 0) return {};
  const uint64_t offset =
      element < 0 ? 0 : static_cast<uint64_t>(element) * element_bytes(graph_.at(tensor).format);
  if (int fixed = arena_.of_tensor[tensor]; fixed >= 0) return {fixed, true, offset + part_begin(tensor)};
  if (!graph_.at(tensor).per_sample) {
    if (!has(tensor)) new_value(tensor, rows.count, phase);
    const int v = value_[tensor];
    program_.buffers[v].last = static_cast<int>(program_.instructions.size());
    return {v, false, offset};
  }
  const bool part = !holds_part(tensor) && rows.part;
  // A tensor that is filled chunk by chunk has one buffer: only the first chunk creates it.
  if (!(part && rows.begin > 0))
    new_value(tensor, rows.part || rows_ > 0 ? rows.count : all_rows(tensor), phase);
  const int v = value_[tensor];
  program_.buffers[v].last = static_cast<int>(program_.instructions.size());
  return {v, false, part ? graph_.at(tensor).row_bytes() * static_cast<uint64_t>(rows.begin) : 0};
}

void Emitter::emit_ops(int first, int count, int64_t element, Phase phase, bool accumulate, int64_t row_begin,
                       int64_t rows, bool keeps) {
  const Op& op = graph_.op(first);
  const int64_t of_sample = graph_.rows_of(op), all = rows_ > 0 ? rows_ : samples_ * of_sample;
  if (rows == 0) rows = all;
  const RowRange range{row_begin, rows, rows != all};
  const bool is_fused = count > 1 && graph_.op(first + 1).fused;
  assert(count == 1 || is_fused || op_row(op.kind).is_multi_tensor);
  for (int n = 0; n < (is_fused ? count : 1); ++n)
    for (int t : host_operands(first + n, phase, accumulate))
      if (!has(t)) fetch(t, phase);
  // The output that the first op passes to the next one in registers.
  const int passed_on = is_fused && !keeps && reads(graph_.op(first + 1), op.outputs[0]) ? op.outputs[0] : -1;
  Instruction i{};
  i.kind = op.kind;
  i.phase = phase;
  i.accumulate = accumulate;
  i.op = first;
  i.ops = count;
  i.first_operand = static_cast<int>(program_.operands.size());
  i.inputs = static_cast<int>(op.inputs.size());
  i.outputs = static_cast<int>(op.outputs.size());
  i.samples = samples_;
  i.rows = rows;
  i.first_row = row_begin % of_sample;
  i.first_element = first_element_;
  i.elements = elements_;
  i.stage = stage_;
  const Extent extent{samples_, rows, threads_, elements_, rows != samples_ * of_sample};
  uint64_t bytes = 0;  // scratch memory
  for (int n = 0; n < count; ++n) {
    const Op& one = graph_.op(first + n);
    const OpRow& row = op_row(one.kind);
    for (size_t k = 0; k < one.inputs.size(); ++k) {
      const bool only_shape = !reads_input(one.kind, k) && on_host(one.inputs[k]);
      const bool absent = only_shape || (passed_on >= 0 && one.inputs[k] == passed_on);
      program_.operands.push_back(absent ? Operand{} : use(one.inputs[k], range, phase));
    }
    for (int t : one.outputs)
      program_.operands.push_back(
          t == passed_on && t >= 0 ? Operand{} : define(t, range, phase, element < 0 ? -1 : element + n));
    bytes = size_add(bytes, row.workspace(graph_, one, extent));
  }
  if (bytes > 0) {
    Buffer b;
    b.bytes = bytes;
    b.first = b.last = static_cast<int>(program_.instructions.size());
    b.owner = MemoryClass::workspace;
    i.workspace = {static_cast<int>(program_.buffers.size()), false, 0};
    program_.buffers.push_back(b);
    made_in_.push_back(phase);
  }
  if (passed_on >= 0) drop(passed_on);
  program_.instructions.push_back(i);
}

void Emitter::emit_chunks(const std::vector<int>& ops, const std::vector<Tile>& chunks, Phase phase,
                          bool accumulate) {
  for (const Tile& chunk : chunks)
    for (int op : ops) emit(op, phase, accumulate || chunk.begin > 0, chunk.begin, chunk.rows);
}

void Emitter::emit_tiles(int first, int count, const std::vector<int>& inner,
                         const std::vector<Tile>& tiles) {
  set_tiled(inner, true);
  for (const Tile& tile : tiles)
    for (int op = first, run; op < first + count; op += run) {
      run = fused_run(graph_, op);
      emit_fused(op, run, Phase::forward, false, false, tile.begin, tile.rows);
    }
  set_tiled(inner, false);
  for (int t : inner) drop(t);
}

void Emitter::merge_in_place() {
  std::vector<int> root(program_.buffers.size());
  for (size_t b = 0; b < root.size(); ++b) root[b] = static_cast<int>(b);
  auto buffer = [&](const Operand& o) -> Buffer& { return program_.buffers[root[o.buffer]]; };
  for (size_t n = 0; n < program_.instructions.size(); ++n) {
    const Instruction& whole = program_.instructions[n];
    // How many operands of the instruction use the buffer `of`. A norm's gradient and the bias's gradient
    // that is fused with it both read the addend.
    const auto uses_of = [&](int of) {
      int uses = 0;
      for (int k = 0; k < whole.ops; ++k) {
        const Instruction one = op_alone(graph_, whole, k);
        const bool reads_addend = k > 0 && whole.kind == OpKind::norm_gradient &&
                                  graph_.op(one.op).inputs[in(OpKind::linear_bias_gradient, "dy")] ==
                                      graph_.op(whole.op).inputs[in(OpKind::norm_gradient, "addend")];
        for (int o = one.first_operand + reads_addend; o < one.first_operand + one.inputs + one.outputs;
             ++o) {
          const Operand& operand = program_.operands[o];
          uses += operand.buffer >= 0 && !operand.persistent && root[operand.buffer] == of;
        }
      }
      return uses;
    };
    for (int of = 0; of < whole.ops; ++of) {
      const Instruction i = op_alone(graph_, whole, of);
      const Operand* operands = program_.operands.data() + i.first_operand;
      for (InPlace pair : op_row(i.kind).in_place) {
        if (pair.output < 0 || pair.input >= i.inputs || pair.output >= i.outputs) continue;
        const Operand &in = operands[pair.input], &out = operands[i.inputs + pair.output];
        if (in.buffer < 0 || out.buffer < 0 || in.persistent || out.persistent) continue;
        const int source = root[in.buffer];
        if (source == root[out.buffer]) break;
        Buffer &from = buffer(in), &to = buffer(out);
        if (from.last != static_cast<int>(n) || to.first != static_cast<int>(n) || to.bytes != from.bytes)
          continue;
        if (from.owner == MemoryClass::inputs || in.offset != 0 || out.offset != 0) continue;
        const auto copy = copied_in_.find(in.buffer);
        if (copy != copied_in_.end() && copy->second == whole.stage) continue;
        if (uses_of(source) > 1) continue;  // read twice, or computed by an earlier op of this instruction
        from.last = to.last;
        // The output that takes over this buffer is kept for the backward pass.
        if (to.owner == MemoryClass::saved_activations) from.owner = to.owner;
        root[out.buffer] = source;
        break;
      }
    }
  }
  // Removes the buffers that were merged away.
  std::vector<int> place(root.size(), -1);
  std::vector<Buffer> kept;
  for (size_t b = 0; b < root.size(); ++b) {
    if (root[b] != static_cast<int>(b)) continue;
    place[b] = static_cast<int>(kept.size());
    kept.push_back(program_.buffers[b]);
  }
  auto renumber = [&](int& b) {
    if (b >= 0) b = place[root[b]];
  };
  for (Operand& o : program_.operands)
    if (!o.persistent) renumber(o.buffer);
  for (Instruction& i : program_.instructions) renumber(i.workspace.buffer);
  for (int* b : {&program_.logits, &program_.losses}) renumber(*b);
  for (int& b : program_.inputs.of) renumber(b);
  for (int& b : program_.caches) renumber(b);
  for (int& b : watched_) renumber(b);
  program_.buffers = std::move(kept);
}

Program Emitter::finish(uint64_t base) {
  const int end = static_cast<int>(program_.instructions.size()) - 1;
  for (size_t i = 0; i < input_count; ++i) {
    const int tensor = graph_.inputs.of[i];
    if (tensor < 0 || !has(tensor)) continue;
    program_.buffers[buffer_of(tensor)].first = 0;
    program_.inputs.of[i] = buffer_of(tensor);
  }
  for (int b : program_.caches) {
    program_.buffers[b].first = 0;
    program_.buffers[b].last = end;
  }
  if (program_.logits >= 0) program_.buffers[program_.logits].last = end;
  merge_in_place();
  program_.base = base;
  return std::move(program_);
}

}  // namespace stw
