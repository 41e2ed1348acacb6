#include "planner/search/segment_class.h"

#include <bit>
#include <map>

#include "planner/graph/segment_lives.h"

namespace stw {

namespace {

// A segment as a list of numbers. Two segments are equal exactly if their lists are.
class Signature {
 public:
  Signature(const Graph& graph, const Segment& segment, const SegmentLives& lives,
            const std::vector<bool>& is_shared)
      : graph_(graph), is_shared_(is_shared) {
    add(static_cast<int64_t>(segment.kind));
    for (int i = 0; i < segment.op_count; ++i) add(graph.ops[segment.first_op + i]);
    add(int64_t{-2});
    for (int i = 0; i < segment.gradient_op_count; ++i)
      add(graph.gradient_ops[segment.first_gradient_op + i]);
    for (int op : segment.saveable) add(static_cast<int64_t>(op - segment.first_op));
    add(segment.output);
    for (const bool is : {lives.keeps_output, lives.has_readers}) add(int64_t{is});
    add(static_cast<int64_t>(lives.outputs.size()));
    for (const auto& [tensor, is_kept, outlives_forward, is_in_backward, outlives_backward] : lives.outputs) {
      add(tensor);
      for (const bool is : {is_kept, outlives_forward, is_in_backward, outlives_backward}) add(int64_t{is});
    }
    for (const auto& [tensor, enters, leaves] : lives.gradients) {
      add(tensor);
      for (const bool is : {enters, leaves}) add(int64_t{is});
    }
  }
  std::vector<int64_t> take() { return std::move(numbers_); }

 private:
  void add(int64_t number) { numbers_.push_back(number); }
  void add(float x) { add(static_cast<int64_t>(std::bit_cast<uint32_t>(x))); }

  // Numbers tensors as they appear, so that only the wiring counts.
  void add(int tensor) {
    if (tensor < 0) return add(int64_t{-1});
    const auto [entry, is_new] = seen_.try_emplace(tensor, static_cast<int64_t>(seen_.size()));
    add(entry->second);
    if (!is_new) return;
    const Tensor& t = graph_.at(graph_.resolve(tensor));
    for (int64_t x : {static_cast<int64_t>(t.role), static_cast<int64_t>(t.format),
                      static_cast<int64_t>(t.shape.rank), static_cast<int64_t>(t.per_sample),
                      static_cast<int64_t>(t.trainable), static_cast<int64_t>(t.chunked)})
      add(x);
    // A shared parameter never lies in host memory.
    if (is_shared_[graph_.resolve(tensor)]) add(int64_t{-3});
    for (int i = 0; i < t.shape.rank; ++i) add(t.shape[i]);
  }

  void add(const Op& op) {
    // This binding names every attribute, so a new attribute that is forgotten here does not compile.
    // `stream` is left out: it changes neither memory nor time.
    [[maybe_unused]] const auto& [epsilon, rms, transposed, activation, gate, value_loss, weight_offset,
                                  query_heads, kv_heads, head_dim, scale, causal, alibi, window,
                                  relative_keys, relative_queries, inverse, dropout, columns, stream] =
        op.attributes;
    add(static_cast<int64_t>(op.kind));
    for (float x : {epsilon, scale, dropout, weight_offset}) add(x);
    for (int64_t x : {int64_t{rms}, int64_t{transposed}, static_cast<int64_t>(activation),
                      static_cast<int64_t>(gate), int64_t{query_heads}, int64_t{kv_heads}, int64_t{head_dim},
                      int64_t{causal}, int64_t{alibi}, window, int64_t{relative_keys},
                      int64_t{relative_queries}, int64_t{inverse}, static_cast<int64_t>(value_loss)})
      add(x);
    for (int64_t column : columns) add(column);
    for (const auto* list : {&op.inputs, &op.outputs}) {
      add(static_cast<int64_t>(list->size()));
      for (int t : *list) add(t);
    }
  }

  const Graph& graph_;
  const std::vector<bool>& is_shared_;
  std::map<int, int64_t> seen_;
  std::vector<int64_t> numbers_;
};

// For every tensor that owns a parameter's bytes: whether several segments use it.
std::vector<bool> shared_parameters(const Graph& graph) {
  std::vector<int> user(graph.tensors.size(), -1);
  std::vector<bool> is_shared(graph.tensors.size());
  for (const Op& op : graph.ops)
    for (int t : op.inputs) {
      if (t < 0 || graph.at(t).role != Role::parameter) continue;
      const auto p = static_cast<size_t>(graph.resolve(t));
      is_shared[p] = is_shared[p] || (user[p] >= 0 && user[p] != op.segment);
      user[p] = op.segment;
    }
  return is_shared;
}

}  // namespace

std::vector<int> segment_classes(const Graph& graph) {
  const std::vector<bool> is_shared = shared_parameters(graph);
  std::map<std::vector<int64_t>, int> known;
  std::vector<int> classes;
  const std::vector<SegmentLives> lives = segment_lives(graph);
  for (size_t s = 0; s < lives.size(); ++s)
    classes.push_back(known
                          .try_emplace(Signature(graph, graph.segments[s], lives[s], is_shared).take(),
                                       static_cast<int>(known.size()))
                          .first->second);
  return classes;
}

}  // namespace stw
