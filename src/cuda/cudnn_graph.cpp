#include "src/cuda/cudnn_graph.h"

#include <algorithm>
#include <iterator>

namespace stw::cuda::cudnn {

Descriptors::~Descriptors() {
  for (auto d = all_.rbegin(); d != all_.rend(); ++d) f_.BackendDestroyDescriptor(*d);
}

Descriptor Descriptors::make(DescriptorType type) {
  Descriptor d = nullptr;
  if (status_ == success) status_ = f_.BackendCreateDescriptor(type, &d);
  if (d) all_.push_back(d);
  return d;
}

void Descriptors::set(Descriptor d, Attribute attribute, AttributeType type, int64_t count,
                      const void* values) {
  if (status_ == success) status_ = f_.BackendSetAttribute(d, attribute, type, count, values);
}

void Descriptors::finalize(Descriptor d) {
  if (status_ == success) status_ = f_.BackendFinalize(d);
}

Descriptor OpGraph::make_tensor(DataType type, const Dimensions& dimensions, int64_t id, bool is_virtual,
                                bool is_by_value) {
  const Descriptor d = d_.make(DescriptorType::tensor);
  d_.set(d, Attribute::tensor_type, AttributeType::data_type, type);
  d_.set(d, Attribute::tensor_dimensions, AttributeType::int64, 4, dimensions.extent);
  d_.set(d, Attribute::tensor_strides, AttributeType::int64, 4, dimensions.stride);
  d_.set(d, Attribute::tensor_id, AttributeType::int64, id);
  d_.set(d, Attribute::tensor_alignment, AttributeType::int64, int64_t{type == DataType::f32 ? 4 : 16});
  if (is_virtual) d_.set(d, Attribute::tensor_is_virtual, AttributeType::boolean, true);
  if (is_by_value) d_.set(d, Attribute::tensor_is_by_value, AttributeType::boolean, true);
  d_.finalize(d);
  return d;
}

Descriptor OpGraph::tensor(DataType type, const Dimensions& dimensions, int64_t id) {
  return make_tensor(type, dimensions, id, false, false);
}
Descriptor OpGraph::number(int64_t id) {
  return make_tensor(DataType::f32, {{1, 1, 1, 1}, {1, 1, 1, 1}}, id, false, true);
}
Descriptor OpGraph::inner(DataType type, const Dimensions& dimensions) {
  return make_tensor(type, dimensions, next_inner_++, true, false);
}

void OpGraph::multiply(Descriptor a, Descriptor b, Descriptor c) {
  const Descriptor product = d_.make(DescriptorType::matmul),
                   operation = d_.make(DescriptorType::matmul_operation);
  d_.set(product, Attribute::matmul_precision, AttributeType::data_type, DataType::f32);
  d_.finalize(product);
  d_.set(operation, Attribute::matmul_a, a);
  d_.set(operation, Attribute::matmul_b, b);
  d_.set(operation, Attribute::matmul_c, c);
  d_.set(operation, Attribute::matmul_descriptor, product);
  d_.finalize(operation);
  operations_.push_back(operation);
}

void OpGraph::add_pointwise(Pointwise mode, Descriptor x, Descriptor b, Descriptor y, Descriptor t,
                            int64_t axis) {
  const Descriptor function = d_.make(DescriptorType::pointwise),
                   operation = d_.make(DescriptorType::pointwise_operation);
  d_.set(function, Attribute::pointwise_mode, AttributeType::pointwise_mode, mode);
  d_.set(function, Attribute::pointwise_precision, AttributeType::data_type,
         mode == Pointwise::greater_or_equal ? DataType::boolean : DataType::f32);
  if (axis >= 0) d_.set(function, Attribute::pointwise_axis, AttributeType::int64, axis);
  d_.finalize(function);
  d_.set(operation, Attribute::pointwise_descriptor, function);
  d_.set(operation, Attribute::pointwise_x, x);
  if (b) d_.set(operation, Attribute::pointwise_b, b);
  if (t) d_.set(operation, Attribute::pointwise_t, t);
  d_.set(operation, Attribute::pointwise_y, y);
  d_.finalize(operation);
  operations_.push_back(operation);
}

void OpGraph::pointwise(Pointwise mode, Descriptor x, Descriptor b, Descriptor y, Descriptor t) {
  add_pointwise(mode, x, b, y, t, -1);
}
void OpGraph::index(Descriptor x, Descriptor y, int64_t axis) {
  add_pointwise(Pointwise::index, x, nullptr, y, nullptr, axis);
}

void OpGraph::reduce(Reduction what, Descriptor x, Descriptor y) {
  const Descriptor reduction = d_.make(DescriptorType::reduction),
                   operation = d_.make(DescriptorType::reduction_operation);
  d_.set(reduction, Attribute::reduction_precision, AttributeType::data_type, DataType::f32);
  d_.set(reduction, Attribute::reduction_operator, AttributeType::reduction_operator, what);
  d_.finalize(reduction);
  d_.set(operation, Attribute::reduction_x, x);
  d_.set(operation, Attribute::reduction_y, y);
  d_.set(operation, Attribute::reduction_descriptor, reduction);
  d_.finalize(operation);
  operations_.push_back(operation);
}

void OpGraph::reshape(Descriptor x, Descriptor y) {
  const Descriptor operation = d_.make(DescriptorType::reshape_operation);
  d_.set(operation, Attribute::reshape_x, x);
  d_.set(operation, Attribute::reshape_y, y);
  d_.finalize(operation);
  operations_.push_back(operation);
}

Descriptor Plan::describe(Handle handle) {
  Descriptors& d = graph_->descriptors();
  const Descriptor graph = d.make(DescriptorType::operation_graph);
  d.set(graph, Attribute::graph_handle, AttributeType::handle, handle);
  d.set(graph, Attribute::graph_operations, AttributeType::descriptor,
        static_cast<int64_t>(graph_->operations().size()), graph_->operations().data());
  d.finalize(graph);
  return graph;
}

// Whether the failure is temporary (no memory, or no answer of the device) and says nothing about the engine.
static bool is_of_the_moment(Status status) {
  return status == host_allocation_failed || status == device_allocation_failed || status >= execution_failed;
}

bool Plan::finalize(Handle handle, Descriptor config, int64_t most_workspace, Status& failed) {
  Descriptors& d = graph_->descriptors();
  const Descriptor plan = d.make(DescriptorType::execution_plan);
  d.set(plan, Attribute::plan_handle, AttributeType::handle, handle);
  d.set(plan, Attribute::plan_config, config);
  const Status status = d.status() != success ? d.status() : d.functions().BackendFinalize(plan);
  if (is_of_the_moment(status)) failed = status;
  if (status != success) return false;  // try the next engine
  int64_t bytes = 0, count = 0;
  if (d.functions().BackendGetAttribute(plan, Attribute::plan_workspace, AttributeType::int64, 1, &count,
                                        &bytes) != success ||
      bytes > most_workspace)
    return false;
  plan_ = plan;
  return true;
}

bool Plan::is_deterministic(Descriptor config) {
  Descriptors& d = graph_->descriptors();
  const Functions& f = d.functions();
  Descriptor engine = d.make(DescriptorType::engine);
  NumericalNote notes[32] = {};
  int64_t count = 0;
  if (d.status() != success ||
      f.BackendGetAttribute(config, Attribute::config_engine, AttributeType::descriptor, 1, &count,
                            &engine) != success)
    return false;
  if (f.BackendGetAttribute(engine, Attribute::engine_notes, AttributeType::numerical_note, std::size(notes),
                            &count, notes) != success)
    return false;
  const auto end = notes + std::clamp<int64_t>(count, 0, std::size(notes));
  return std::find(notes, end, NumericalNote::nondeterministic) == end &&
         f.BackendGetAttribute(engine, Attribute::engine_index, AttributeType::int64, 1, &count,
                               &engine_.index) == success;
}

void Plan::read_engine(Descriptor config) {
  Descriptors& d = graph_->descriptors();
  const Functions& f = d.functions();
  Descriptor choices[64] = {};
  for (Descriptor& choice : choices) choice = d.make(DescriptorType::knob_choice);
  int64_t count = 0, one = 0;
  if (d.status() != success ||
      f.BackendGetAttribute(config, Attribute::config_knob_choices, AttributeType::descriptor,
                            std::size(choices), &count, choices) != success)
    return;
  for (int64_t i = 0; i < std::min<int64_t>(count, std::size(choices)); ++i) {
    int type = 0;
    int64_t value = 0;
    if (f.BackendGetAttribute(choices[i], Attribute::knob_type, AttributeType::knob_type, 1, &one, &type) ==
            success &&
        f.BackendGetAttribute(choices[i], Attribute::knob_value, AttributeType::int64, 1, &one, &value) ==
            success)
      engine_.knobs.emplace_back(type, value);
  }
}

std::unique_ptr<Plan> Plan::best(Handle handle, std::unique_ptr<OpGraph> graph, int64_t most_workspace,
                                 Status& failed) {
  std::unique_ptr<Plan> plan(new Plan(std::move(graph)));
  Descriptors& d = plan->graph_->descriptors();
  const Descriptor described = plan->describe(handle), heuristics = d.make(DescriptorType::engine_heuristics);
  d.set(heuristics, Attribute::heuristics_graph, described);
  d.set(heuristics, Attribute::heuristics_mode, AttributeType::heuristics_mode, HeuristicsMode::a);
  d.finalize(heuristics);
  Descriptor configs[16] = {};
  for (Descriptor& config : configs) config = d.make(DescriptorType::engine_config);
  int64_t count = 0;
  Status proposed = d.status();
  if (proposed == success)
    proposed =
        d.functions().BackendGetAttribute(heuristics, Attribute::heuristics_results,
                                          AttributeType::descriptor, std::size(configs), &count, configs);
  if (is_of_the_moment(proposed)) failed = proposed;
  if (proposed != success) return nullptr;
  // In order of preference.
  for (int64_t i = 0; i < std::min<int64_t>(count, std::size(configs)) && failed == success; ++i) {
    if (!plan->is_deterministic(configs[i]) || !plan->finalize(handle, configs[i], most_workspace, failed))
      continue;
    plan->read_engine(configs[i]);
    return plan;
  }
  return nullptr;
}

std::unique_ptr<Plan> Plan::make(Handle handle, std::unique_ptr<OpGraph> graph, const Engine& engine,
                                 int64_t most_workspace, Status& failed) {
  std::unique_ptr<Plan> plan(new Plan(std::move(graph)));
  Descriptors& d = plan->graph_->descriptors();
  const Descriptor described = plan->describe(handle), chosen = d.make(DescriptorType::engine),
                   config = d.make(DescriptorType::engine_config);
  d.set(chosen, Attribute::engine_graph, described);
  d.set(chosen, Attribute::engine_index, AttributeType::int64, engine.index);
  d.finalize(chosen);
  std::vector<Descriptor> choices;
  for (const auto& [type, value] : engine.knobs) {
    const Descriptor choice = d.make(DescriptorType::knob_choice);
    d.set(choice, Attribute::knob_type, AttributeType::knob_type, type);
    d.set(choice, Attribute::knob_value, AttributeType::int64, value);
    d.finalize(choice);
    choices.push_back(choice);
  }
  d.set(config, Attribute::config_engine, chosen);
  if (!choices.empty())
    d.set(config, Attribute::config_knob_choices, AttributeType::descriptor,
          static_cast<int64_t>(choices.size()), choices.data());
  d.finalize(config);
  if (!plan->finalize(handle, config, most_workspace, failed)) return nullptr;
  plan->engine_ = engine;
  return plan;
}

Status Plan::execute(Handle handle, const std::vector<Binding>& bindings, void* workspace) const {
  Descriptors d(graph_->descriptors().functions());
  std::vector<int64_t> ids;
  std::vector<const void*> pointers;
  for (const Binding& b : bindings) {
    ids.push_back(b.id);
    pointers.push_back(b.data);
  }
  const Descriptor pack = d.make(DescriptorType::variant_pack);
  d.set(pack, Attribute::pack_ids, AttributeType::int64, static_cast<int64_t>(ids.size()), ids.data());
  d.set(pack, Attribute::pack_pointers, AttributeType::pointer, static_cast<int64_t>(pointers.size()),
        pointers.data());
  d.set(pack, Attribute::pack_workspace, AttributeType::pointer, workspace);
  d.finalize(pack);
  return d.status() == success ? d.functions().BackendExecute(handle, plan_, pack) : d.status();
}

}  // namespace stw::cuda::cudnn
