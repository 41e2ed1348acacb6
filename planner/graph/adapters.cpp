#include "planner/graph/adapters.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "planner/graph/feed_forward.h"
#include "planner/graph/operands.h"

namespace stw {

namespace {

constexpr double largest_alpha = 1e6;

class AdapterBuilder {
 public:
  AdapterBuilder(Graph& graph, const Adapters& adapters,
                 const std::function<bool(const Tensor&)>& is_trained_whole)
      : graph_(graph),
        adapters_(adapters),
        is_trained_whole_(is_trained_whole),
        is_known_(adapters.targets.size()) {
    for (const Tensor& t : graph.tensors) next_ordinal_ = std::max(next_ordinal_, t.ordinal + 1);
    for (const std::vector<Op>* list : {&graph.ops, &graph.table_ops})
      for (const Op& op : *list) stream_ = std::max(stream_, op.attributes.stream);
  }

  Status run() {
    for (Tensor& t : graph_.tensors)
      if (t.role == Role::parameter) t.trainable = t.of_adapters = is_trained_whole_ && is_trained_whole_(t);
    const std::vector<Op> ops = std::exchange(graph_.ops, {});
    for (size_t s = 0; s < graph_.segments.size(); ++s) {
      Segment& segment = graph_.segments[s];
      const int first = segment.first_op, end = first + segment.op_count;
      segment_ = static_cast<int>(s);
      segment.first_op = static_cast<int>(graph_.ops.size());
      for (int i = first; i < end; ++i) {
        const Op& op = ops[i];
        graph_.ops.push_back(op);
        if (segment.kind != SegmentKind::head && op.kind == OpKind::linear) adapt();
      }
      segment.op_count = static_cast<int>(graph_.ops.size()) - segment.first_op;
    }
    ops_ = &graph_.table_ops;
    for (const Op& op : std::exchange(graph_.table_ops, {})) {
      segment_ = op.segment;
      graph_.table_ops.push_back(op);
      if (op.kind == OpKind::linear) adapt();
    }
    for (size_t i = 0; i < is_known_.size(); ++i)
      if (!is_known_[i]) return unknown(adapters_.targets[i]);
    return ok();
  }

 private:
  bool is_target(const std::string& module) {
    modules_.insert(module.substr(module.rfind('.') + 1));
    bool any = false;
    for (size_t i = 0; i < is_known_.size(); ++i)
      if (adapters_.targets[i] == all_targets || names_module(adapters_.targets[i], module))
        any = is_known_[i] = true;
    return any;
  }

  Error unknown(const std::string& target) const {
    const size_t dot = target.rfind('.');
    if (dot != target.npos && modules_.count(target.substr(dot + 1)))
      return {Code::bad_argument,
              "no block of the model has a matrix for the adapters' target \"" + target + "\""};
    std::string list;
    for (const std::string& m : modules_) list += m + ", ";
    return {Code::bad_argument, "no matrix of the model matches the adapters' target \"" + target +
                                    "\"; there are " + list + "and " + all_targets + " for all"};
  }

  // Adds a factor of a matrix, or returns the existing one if the matrix was adapted before.
  int parameter(int weight, const char* suffix, Shape shape, Initializer initializer, float std) {
    const auto [known, is_new] =
        factors_.try_emplace({weight, suffix}, static_cast<int>(graph_.tensors.size()));
    if (!is_new) return known->second;
    Tensor t;
    t.name = module_name(graph_.at(weight)) + suffix;
    t.role = Role::parameter;
    t.format = graph_.compute;
    t.shape = shape;
    t.trainable = true;
    t.adapter_of = weight;
    t.of_adapters = true;
    t.initializer = initializer;
    t.init_std = std;
    t.ordinal = next_ordinal_++;
    return add(std::move(t));
  }

  int add(Tensor t) {
    graph_.tensors.push_back(std::move(t));
    return static_cast<int>(graph_.tensors.size()) - 1;
  }

  // With the rows of `like`, which are those of samples or of a table.
  int activation(std::string name, int like, int64_t features) {
    Tensor t;
    t.name = std::move(name);
    t.format = graph_.compute;
    t.rows = graph_.rows_of(like);
    t.shape = {t.rows, features};
    t.per_sample = graph_.at(like).per_sample;
    t.segment = segment_;
    return add(std::move(t));
  }

  void emit(OpKind kind, const Attributes& attributes, std::vector<int> inputs, int output) {
    ops_->push_back({kind, attributes, std::move(inputs), {output}, segment_});
  }

  // Adapts the op that was added last: its output becomes the base, and its readers read the adapter's
  // output.
  void adapt() {
    const Op& linear = ops_->back();
    const bool transposed = linear.attributes.transposed;
    const size_t base_op = ops_->size() - 1;
    const int x = linear.inputs[in(OpKind::linear, "x")], y = linear.outputs[0];
    std::vector<int> low_weights, high_weights;
    Attributes of_parts;
    int64_t column = 0;
    for (const int weight : part_inputs(linear, "weight")) {
      const Shape shape = graph_.at(weight).shape;
      const int64_t inputs = shape[transposed ? 0 : 1], features = shape[transposed ? 1 : 0];
      if (!graph_.at(weight).trainable && is_target(module_name(graph_.at(weight)))) {
        // PEFT initialises A with uniform numbers within ±1 / sqrt(inputs). This is their standard deviation.
        const auto std = static_cast<float>(1 / std::sqrt(3 * static_cast<double>(inputs)));
        of_parts.columns[high_weights.size()] = column;
        low_weights.push_back(
            parameter(weight, low_suffix, {adapters_.rank, inputs}, Initializer::normal, std));
        high_weights.push_back(
            parameter(weight, high_suffix, {features, adapters_.rank}, Initializer::zeros, 0));
        // The rows of B have the order of the weight's rows.
        graph_.tensors[high_weights.back()].layout = graph_.at(weight).layout;
      }
      column += features;
    }
    if (high_weights.empty()) return;

    Tensor of_base = graph_.at(y);
    const std::string name = of_base.name;
    of_base.name += "_base";
    of_base.role = Role::activation;  // of a table: only the adapted result is kept
    const int base = add(std::move(of_base));
    (*ops_)[base_op].outputs[0] = base;
    int from = x;
    if (adapters_.dropout > 0) {
      Attributes a;
      a.dropout = static_cast<float>(adapters_.dropout);
      a.stream = ++stream_;
      from = activation(name + "_dropout", x, graph_.features(x));
      emit(OpKind::dropout, a, {x}, from);
    }
    std::vector<int> inputs{from, -1};
    for (int w : low_weights) inputs.insert(inputs.end(), {w, -1});
    const int64_t width = static_cast<int64_t>(low_weights.size()) * adapters_.rank;
    int low = activation(name + "_low", x, width);
    emit(OpKind::linear, {}, std::move(inputs), low);
    if (const auto scale = static_cast<float>(adapters_.scale()); scale != 1) {
      Attributes a;
      a.scale = scale;
      const int scaled = activation(name + "_scaled", x, width);
      emit(OpKind::scale, a, {std::exchange(low, scaled)}, scaled);
    }
    inputs = {base, low};
    inputs.insert(inputs.end(), high_weights.begin(), high_weights.end());
    emit(OpKind::adapter, of_parts, std::move(inputs), y);
  }

  Graph& graph_;
  std::vector<Op>* ops_ = &graph_.ops;  // that ops are added to
  const Adapters& adapters_;
  const std::function<bool(const Tensor&)>& is_trained_whole_;
  std::vector<bool> is_known_;                          // for each target: whether it names a matrix
  std::map<std::pair<int, std::string>, int> factors_;  // key: matrix and suffix
  std::set<std::string> modules_;  // last parts of the names of all matrices that could have an adapter
  int next_ordinal_ = 0, segment_ = -1;
  uint32_t stream_ = 0;
};

}  // namespace

double Adapters::scale() const {
  return alpha / (rank_stabilised ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
}

std::string module_name(const Tensor& weight) {
  constexpr std::string_view suffix = ".weight";
  return weight.name.ends_with(suffix) ? weight.name.substr(0, weight.name.size() - suffix.size())
                                       : weight.name;
}

bool names_module(const std::string& target, const std::string& module) {
  if (target == module) return true;
  return module.size() > target.size() && module.ends_with(target) &&
         module[module.size() - target.size() - 1] == '.';
}

void limit_adapter_choices(Graph& graph) {
  const auto op = [&](int i) -> const Op& { return graph.ops[i]; };
  std::vector<bool> is_narrow(graph.tensors.size()), is_dropped(graph.tensors.size());
  for (const Op& o : graph.ops) {
    const auto y = static_cast<size_t>(o.outputs.empty() ? 0 : o.outputs[0]);
    constexpr int x = in(OpKind::linear, "x"), weight = in(OpKind::linear, "weight");
    if (o.kind == OpKind::scale && is_narrow[o.inputs[in(OpKind::scale, "x")]]) is_narrow[y] = true;
    if (o.kind != OpKind::linear || graph.at(o.inputs[weight]).adapter_of < 0) continue;
    is_narrow[y] = true;
    const int made_by = graph.producer[o.inputs[x]];
    // Only the adapter reads its dropout's output; the matrix reads the tensor before the dropout.
    if (made_by >= 0 && op(made_by).kind == OpKind::dropout && &o == &op(made_by + 1))
      is_dropped[o.inputs[x]] = true;
  }
  for (Segment& s : graph.segments) {
    s.kept_with.assign(s.saveable.size(), Segment::own_choice);
    int of_part = Segment::own_choice;  // first narrow tensor inside the feed-forward part
    for (size_t k = 0; k < s.saveable.size(); ++k) {
      const int tensor = op(s.saveable[k]).outputs[0];
      if (is_dropped[tensor]) s.kept_with[k] = Segment::never;
      if (!is_narrow[tensor]) continue;
      const bool is_inside = is_inner(s.feed_forward, tensor);
      s.kept_with[k] = is_inside ? of_part : Segment::always;
      if (is_inside && of_part == Segment::own_choice) of_part = static_cast<int>(k);
    }
  }
}

Status add_adapters(Graph& graph, const Adapters& adapters,
                    const std::function<bool(const Tensor&)>& is_trained_whole) {
  const auto wrong = [](const std::string& what) { return Error{Code::bad_argument, "adapters: " + what}; };
  if (!adapters.any()) return ok();
  if (adapters.rank > largest_rank)
    return wrong("expected a rank of at most " + std::to_string(largest_rank) + ", found " +
                 std::to_string(adapters.rank));
  if (!(adapters.alpha > 0 && adapters.alpha <= largest_alpha))
    return wrong("alpha must lie above 0 and be at most 1e6");
  if (!(adapters.dropout >= 0 && adapters.dropout < 1)) return wrong("dropout must lie in [0, 1)");
  if (adapters.targets.empty()) return wrong("there are no targets");
  return AdapterBuilder(graph, adapters, is_trained_whole).run();
}

}  // namespace stw
