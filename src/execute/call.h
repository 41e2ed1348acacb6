// The operands of one instruction in the form that kernels take: addresses, types and shapes.
#pragma once
#include <array>
#include <cassert>

#include "src/execute/execute.h"

namespace stw {

class Call {
 public:
  Call(const Execution& execution, const Program& program, const Instruction& instruction, void* stream)
      : x(execution),
        i(instruction),
        op(x.graph->op(i.op)),
        attributes(op.attributes),
        program_(program),
        stream_(stream) {}

  int input_count() const { return i.inputs; }
  const Tensor& input_tensor(int k) const { return x.graph->at(op.inputs[k]); }
  const Tensor& output_tensor(int k) const { return x.graph->at(op.outputs[k]); }
  template <class T = void>
  T* input(int k) const {
    return k < i.inputs ? static_cast<T*>(address(operand(k))) : nullptr;
  }
  template <class T = void>
  T* output(int k) const {
    return k < i.outputs ? static_cast<T*>(address(operand(i.inputs + k))) : nullptr;
  }
  kernels::ConstMatrix in(int k) const {
    if (void* p = input(k)) return {p, dtype_of(input_tensor(k).format)};
    return {nullptr, kernels::DType::f32};
  }
  // Like out(), but has the tensor's type even where the tensor is not stored (its data is then null).
  kernels::Matrix out_or_none(int k) const { return {output(k), dtype_of(output_tensor(k).format)}; }
  kernels::Matrix in_out(int k) const { return {input(k), dtype_of(input_tensor(k).format)}; }
  kernels::Matrix out(int k) const {
    if (void* p = output(k)) return {p, dtype_of(output_tensor(k).format)};
    return {nullptr, kernels::DType::f32};
  }
  int64_t input_features(int k) const { return x.graph->features(op.inputs[k]); }
  int64_t output_features(int k) const { return x.graph->features(op.outputs[k]); }
  int64_t sample_rows() const { return x.graph->rows_of(op); }
  // In the programs of generation, an instruction has its own number of rows.
  int64_t rows_per_sample() const { return i.phase == Phase::generate ? i.rows : sample_rows(); }
  // In the programs of generation, positions count from the one in the step's state.
  const kernels::StepState* position_state() const { return i.phase == Phase::generate ? x.state : nullptr; }

  // The host address of a tensor that a fetch or a store copies, and the bytes of the copy.
  void* on_host(int tensor) const {
    const Buffer& b = x.layout->host[x.layout->host_of_tensor[tensor]];
    return x.host + b.offset + (i.first_element > 0 ? x.graph->at(tensor).part_bytes(i.first_element) : 0);
  }
  uint64_t transferred(int tensor) const {
    return operand_bytes(*x.graph, tensor, extent_of(*x.graph, i, program_.threads));
  }

  std::byte* workspace(uint64_t offset) const {
    return static_cast<std::byte*>(address(i.workspace)) + offset;
  }

  // Runs the kernel. `taken`: bytes at the start of the scratch memory that hold something else.
  template <class Args>
  void run(void (*kernel)(const kernels::Launch&, const Args&), const Args& args, uint64_t taken = 0) const {
    const uint64_t bytes = i.workspace.buffer < 0 ? 0 : program_.buffers[i.workspace.buffer].bytes;
    kernel({&x.parallel, bytes == 0 ? nullptr : workspace(taken), bytes - taken, stream_, x.products,
            x.attention},
           args);
  }

  // Runs all ops of the instruction in one kernel. args_of(call) makes the arguments of each op.
  template <class Args, class ArgsOf>
  void run_together(void (*kernel)(const kernels::Launch&, const kernels::List<Args>&),
                    const ArgsOf& args_of) const {
    std::array<Args, kernels::most_together> list{};
    for (int k = 0; k < i.ops; ++k) {
      const Instruction one = op_alone(*x.graph, i, k);
      list[k] = args_of(Call(x, program_, one, stream_));
    }
    run(kernel, kernels::List<Args>{list.data(), i.ops});
  }

  // Calls use(call) for the k-th op of the instruction, as if it were an instruction of its own.
  template <class Use>
  void with_op(int k, const Use& use) const {
    const Instruction one = op_alone(*x.graph, i, k);
    use(Call(x, program_, one, stream_));
  }

  const Execution& x;
  const Instruction& i;
  const Op& op;
  const Attributes& attributes;

 private:
  const Operand& operand(int k) const { return program_.operands[i.first_operand + k]; }
  void* address(const Operand& o) const {
    if (o.buffer < 0) return nullptr;
    const Buffer& b = (o.persistent ? x.layout->persistent : program_.buffers)[o.buffer];
    return x.arena + b.offset + o.offset;
  }
  const Program& program_;
  void* const stream_;
};

}  // namespace stw
