// A cuDNN over the emulated machine, with the functions of src/cuda/cudnn.h. It executes any graph of the
// operations that we use, one after the other in fp32, and rounds tensors that are kept in 16 bits. An
// element of a product is summed in slices, whose length is a setting of the engine. The best setting depends
// on all extents, and the defaults are others. So a caller that lets the samples of a micro-batch choose the
// setting sees other bits. The first engines in the list are unusable: one is not deterministic, one needs
// more scratch memory than any GPU has. Scratch memory is overwritten.
#include "src/cuda/cudnn.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/simt/runtime.h"
#include "tests/simt/simt.h"

namespace stw::cuda::cudnn {

namespace {

constexpr Status bad_param = 2000;
constexpr int64_t random_engine = 5, greedy_engine = 6, good_engine = 2;
constexpr int slice_knob = 7;

struct Object {
  DescriptorType type;
  bool is_final = false;
  std::map<Attribute, std::vector<int64_t>> values;

  const std::vector<int64_t>& all(Attribute a) const {
    static const std::vector<int64_t> none;
    const auto found = values.find(a);
    return found == values.end() ? none : found->second;
  }
  int64_t one(Attribute a, int64_t otherwise = 0) const { return all(a).empty() ? otherwise : all(a)[0]; }
  const Object* object(Attribute a) const { return reinterpret_cast<const Object*>(one(a)); }
};

int64_t size_of(AttributeType type) {
  switch (type) {
    case AttributeType::boolean: return 1;
    case AttributeType::handle:
    case AttributeType::int64:
    case AttributeType::pointer:
    case AttributeType::descriptor: return 8;
    default: return 4;
  }
}

using Index = std::array<int64_t, 4>;

// A tensor while a graph runs.
struct Values {
  DataType type;
  Index extent, stride;
  std::vector<float> inner;  // Values of a tensor inside the graph.
  void* memory = nullptr;
  float number = 0;
  bool is_number = false;

  int64_t offset(const Index& at) const {
    int64_t sum = 0;
    for (size_t d = 0; d < 4; ++d) sum += (extent[d] == 1 ? 0 : at[d]) * stride[d];
    return sum;
  }
  float at_offset(int64_t o) const {
    if (is_number) return number;
    if (!memory) return inner[o];
    return type == DataType::f32
               ? static_cast<const float*>(memory)[o]
               : simt::half_value(static_cast<const uint16_t*>(memory)[o], type == DataType::bf16);
  }
  float get(const Index& at) const { return at_offset(offset(at)); }
  void put(const Index& at, float x) {
    const int64_t o = offset(at);
    const bool is_half = type == DataType::bf16 || type == DataType::f16;
    const uint16_t bits = is_half ? simt::half_bits(x, type == DataType::bf16) : uint16_t{0};
    if (!memory) inner[o] = is_half ? simt::half_value(bits, type == DataType::bf16) : x;
    else if (is_half) static_cast<uint16_t*>(memory)[o] = bits;
    else static_cast<float*>(memory)[o] = x;
  }
  template <class Body>
  void each(const Body& body) const {
    Index at;
    for (at[0] = 0; at[0] < extent[0]; ++at[0])
      for (at[1] = 0; at[1] < extent[1]; ++at[1])
        for (at[2] = 0; at[2] < extent[2]; ++at[2])
          for (at[3] = 0; at[3] < extent[3]; ++at[3]) body(at);
  }
};

class Run {
 public:
  Run(const Object& graph, std::map<int64_t, void*> memory, std::map<int64_t, float> numbers, int64_t slice)
      : graph_(graph), memory_(std::move(memory)), numbers_(std::move(numbers)), slice_(slice) {}

  void operator()() {
    tensors_.clear();
    for (const int64_t entry : graph_.all(Attribute::graph_operations)) {
      const auto& operation = *reinterpret_cast<const Object*>(entry);
      switch (operation.type) {
        case DescriptorType::matmul_operation: multiply(operation); break;
        case DescriptorType::pointwise_operation: pointwise(operation); break;
        case DescriptorType::reduction_operation: reduce(operation); break;
        default: reshape(operation);
      }
    }
  }

 private:
  Values& values(const Object& operation, Attribute a) {
    const Object& tensor = *operation.object(a);
    const int64_t id = tensor.one(Attribute::tensor_id);
    const auto [entry, is_new] = tensors_.try_emplace(id);
    Values& v = entry->second;
    if (!is_new) return v;
    v.type = static_cast<DataType>(tensor.one(Attribute::tensor_type));
    std::copy_n(tensor.all(Attribute::tensor_dimensions).begin(), 4, v.extent.begin());
    std::copy_n(tensor.all(Attribute::tensor_strides).begin(), 4, v.stride.begin());
    if (tensor.one(Attribute::tensor_is_by_value)) {
      v.is_number = true;
      v.number = numbers_.at(id);
    } else if (tensor.one(Attribute::tensor_is_virtual)) {
      Index last;
      for (size_t d = 0; d < 4; ++d) last[d] = v.extent[d] - 1;
      v.inner.assign(static_cast<size_t>(v.offset(last) + 1), std::numeric_limits<float>::quiet_NaN());
    } else {
      v.memory = memory_.at(id);
    }
    return v;
  }
  // The head of y that this head of x uses. Adjacent heads of x share one head of y.
  static int64_t shared(int64_t head, const Values& x, const Values& y) {
    return head / (x.extent[1] / y.extent[1]);
  }

  void multiply(const Object& o) {
    const Values &a = values(o, Attribute::matmul_a), &b = values(o, Attribute::matmul_b);
    Values& c = values(o, Attribute::matmul_c);
    const int64_t depth = a.extent[3];
    c.each([&](const Index& at) {
      float sum = 0;
      for (int64_t first = 0; first < depth; first += slice_) {
        float part = 0;
        for (int64_t k = first; k < std::min(depth, first + slice_); ++k)
          part = std::fmaf(a.get({at[0], shared(at[1], c, a), at[2], k}),
                           b.get({at[0], shared(at[1], c, b), k, at[3]}), part);
        sum += part;
      }
      c.put(at, sum);
    });
  }

  void pointwise(const Object& o) {
    const Object& function = *o.object(Attribute::pointwise_descriptor);
    const auto mode = static_cast<Pointwise>(function.one(Attribute::pointwise_mode));
    const auto axis = static_cast<size_t>(function.one(Attribute::pointwise_axis));
    const Values& x = values(o, Attribute::pointwise_x);
    const Values* const b = o.object(Attribute::pointwise_b) ? &values(o, Attribute::pointwise_b) : nullptr;
    const Values* const t = o.object(Attribute::pointwise_t) ? &values(o, Attribute::pointwise_t) : nullptr;
    Values& y = values(o, Attribute::pointwise_y);
    y.each([&](const Index& at) {
      const float left = mode == Pointwise::index ? 0 : x.get(at), right = b ? b->get(at) : 0;
      switch (mode) {
        case Pointwise::add: return y.put(at, left + right);
        case Pointwise::sub: return y.put(at, left - right);
        case Pointwise::mul: return y.put(at, left * right);
        case Pointwise::div: return y.put(at, left / right);
        case Pointwise::exp: return y.put(at, std::exp(left));
        case Pointwise::log: return y.put(at, std::log(left));
        case Pointwise::greater_or_equal: return y.put(at, left >= right ? 1.0f : 0.0f);
        case Pointwise::index: return y.put(at, static_cast<float>(at[axis]));
        case Pointwise::select: return y.put(at, t->get(at) != 0 ? left : right);
      }
    });
  }

  void reduce(const Object& o) {
    const bool adds =
        static_cast<Reduction>(
            o.object(Attribute::reduction_descriptor)->one(Attribute::reduction_operator)) == Reduction::add;
    const Values& x = values(o, Attribute::reduction_x);
    Values& y = values(o, Attribute::reduction_y);
    y.each([&](const Index& at) { y.put(at, adds ? 0 : -std::numeric_limits<float>::infinity()); });
    x.each(
        [&](const Index& at) { y.put(at, adds ? y.get(at) + x.get(at) : std::max(y.get(at), x.get(at))); });
  }

  void reshape(const Object& o) {
    const Values& x = values(o, Attribute::reshape_x);
    Values& y = values(o, Attribute::reshape_y);
    y.each([&](const Index& at) { y.put(at, x.at_offset(y.offset(at))); });
  }

  const Object& graph_;
  const std::map<int64_t, void*> memory_;
  const std::map<int64_t, float> numbers_;
  const int64_t slice_;
  std::map<int64_t, Values> tensors_;
};

// The tensors of a graph. All their extents together determine the best setting.
std::vector<const Object*> tensors_of(const Object& graph) {
  std::vector<const Object*> list;
  for (const int64_t entry : graph.all(Attribute::graph_operations))
    for (const auto& [attribute, value] : reinterpret_cast<const Object*>(entry)->values)
      if (const auto* tensor = reinterpret_cast<const Object*>(value[0]);
          tensor->type == DescriptorType::tensor)
        list.push_back(tensor);
  return list;
}
int64_t scores_of(const Object& graph) {
  int64_t most = 0;
  for (const Object* tensor : tensors_of(graph)) {
    const auto& e = tensor->all(Attribute::tensor_dimensions);
    if (tensor->one(Attribute::tensor_is_virtual) && e[2] == e[3])
      most = std::max(most, e[0] * e[1] * e[2] * e[3]);
  }
  return most;
}
bool is_gradient(const Object& graph) { return graph.all(Attribute::graph_operations).size() > 14; }

Status create(DescriptorType type, Descriptor* d) {
  *d = new Object{type, false, {}};
  ++simt::cudnn_descriptors;
  return success;
}
Status destroy(Descriptor d) {
  delete static_cast<Object*>(d);
  --simt::cudnn_descriptors;
  return success;
}

// Afterwards, attributes cannot be set, and other descriptors may refer to this one. cuDNN has these rules
// too.
Status finalize(Descriptor d) {
  auto& o = *static_cast<Object*>(d);
  if (o.is_final) return bad_param;
  if (o.type == DescriptorType::tensor &&
      (o.all(Attribute::tensor_dimensions).size() != 4 || o.all(Attribute::tensor_strides).size() != 4))
    return bad_param;
  if (o.type == DescriptorType::execution_plan) {
    // cuDNN does not document what it compiles and loads during a recording. Here a call during a recording
    // fails.
    if (simt::is_recording()) return execution_failed;
    const Object& config = *o.object(Attribute::plan_config);
    const Object& engine = *config.object(Attribute::config_engine);
    const int64_t index = engine.one(Attribute::engine_index, -1);
    if (index != good_engine && index != random_engine && index != greedy_engine) return not_supported;
    const Object& graph = *engine.object(Attribute::engine_graph);
    if (simt::faults.fail_engine > 0 && --simt::faults.fail_engine == 0) return device_allocation_failed;
    const int64_t own = is_gradient(graph) ? 2 * scores_of(graph) + 128 : 256;
    o.values[Attribute::plan_workspace] = {index == greedy_engine ? int64_t{1} << 40 : own};
  }
  o.is_final = true;
  return success;
}

Status set(Descriptor d, Attribute attribute, AttributeType type, int64_t count, const void* values) {
  auto& o = *static_cast<Object*>(d);
  if (o.is_final) return bad_param;
  std::vector<int64_t>& list = o.values[attribute];
  list.assign(static_cast<size_t>(count), 0);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(&list[i], static_cast<const char*>(values) + i * size_of(type),
                static_cast<size_t>(size_of(type)));
    if (type != AttributeType::descriptor || attribute == Attribute::config_knob_choices) continue;
    if (const auto* part = reinterpret_cast<const Object*>(list[i]);
        !part || (!part->is_final && part->type != DescriptorType::engine_config))
      return bad_param;
  }
  return success;
}

Status give(int64_t value, AttributeType type, int64_t* count, void* to) {
  *count = 1;
  std::memcpy(to, &value, static_cast<size_t>(size_of(type)));
  return success;
}

Status get(Descriptor d, Attribute attribute, AttributeType type, int64_t room, int64_t* count,
           void* values) {
  auto& o = *static_cast<Object*>(d);
  auto* const objects = static_cast<Object**>(values);  // Created by the caller, to be filled in.
  if (attribute == Attribute::heuristics_results) {
    const auto graph = o.one(Attribute::heuristics_graph);
    int64_t extents = 0;
    for (const Object* tensor : tensors_of(*reinterpret_cast<const Object*>(graph)))
      for (const int64_t extent : tensor->all(Attribute::tensor_dimensions)) extents += extent;
    *count = 0;
    if (simt::faults.declines_attention) return success;
    for (const int64_t engine : {random_engine, greedy_engine, good_engine}) {
      if (*count == room) break;
      Object& config = *objects[(*count)++];
      config.values[Attribute::engine_graph] = {graph};
      config.values[Attribute::engine_index] = {engine};
      config.values[Attribute::knob_value] = {8 * (1 + extents % 5)};
      // The engine has its attributes as if a caller had set them.
      static std::vector<std::unique_ptr<Object>> engines;
      engines.push_back(std::make_unique<Object>(
          Object{DescriptorType::engine,
                 true,
                 {{Attribute::engine_graph, {graph}}, {Attribute::engine_index, {engine}}}}));
      config.values[Attribute::config_engine] = {reinterpret_cast<int64_t>(engines.back().get())};
    }
    return success;
  }
  if (attribute == Attribute::config_engine) {
    objects[0]->values = o.object(Attribute::config_engine)->values;
    *count = 1;
    return success;
  }
  if (attribute == Attribute::engine_notes) {
    *count = o.one(Attribute::engine_index) == random_engine;
    if (*count == 1) *static_cast<NumericalNote*>(values) = NumericalNote::nondeterministic;
    return success;
  }
  if (attribute == Attribute::config_knob_choices) {
    objects[0]->values = {{Attribute::knob_type, {slice_knob}},
                          {Attribute::knob_value, {o.one(Attribute::knob_value)}}};
    *count = 1;
    return success;
  }
  if (!o.values.contains(attribute)) return bad_param;
  return give(o.one(attribute), type, count, values);
}

int64_t slice_of(const Object& config) {
  // The setting of a config that comes from the heuristics.
  if (config.values.contains(Attribute::knob_value)) return config.one(Attribute::knob_value);
  for (const int64_t entry : config.all(Attribute::config_knob_choices)) {
    const auto& choice = *reinterpret_cast<const Object*>(entry);
    if (choice.one(Attribute::knob_type) == slice_knob) return choice.one(Attribute::knob_value);
  }
  return 3;
}

struct Library {
  cudaStream_t stream = nullptr;
};

Status execute(Handle handle, Descriptor plan, Descriptor pack) {
  const Object &p = *static_cast<Object*>(plan), &v = *static_cast<Object*>(pack);
  if (!p.is_final || !v.is_final) return bad_param;
  const Object& config = *p.object(Attribute::plan_config);
  const Object& graph = *config.object(Attribute::config_engine)->object(Attribute::engine_graph);
  std::map<int64_t, void*> memory;
  std::map<int64_t, float> numbers;
  const auto &ids = v.all(Attribute::pack_ids), &pointers = v.all(Attribute::pack_pointers);
  for (size_t i = 0; i < ids.size(); ++i) memory[ids[i]] = reinterpret_cast<void*>(pointers[i]);
  for (const Object* tensor : tensors_of(graph)) {
    const int64_t id = tensor->one(Attribute::tensor_id);
    if (tensor->one(Attribute::tensor_is_virtual)) continue;
    if (!memory.contains(id)) return bad_param;
    // Read now, not when the graph runs.
    if (tensor->one(Attribute::tensor_is_by_value)) numbers[id] = *static_cast<const float*>(memory[id]);
    else if (reinterpret_cast<uintptr_t>(memory[id]) %
                 static_cast<uintptr_t>(tensor->one(Attribute::tensor_alignment)) !=
             0)
      return bad_param;
  }
  if (simt::faults.fail_attention > 0 && --simt::faults.fail_attention == 0) return execution_failed;
  ++simt::library_attentions;
  void* const workspace = reinterpret_cast<void*>(v.one(Attribute::pack_workspace));
  const auto bytes = static_cast<size_t>(p.one(Attribute::plan_workspace));
  simt::enqueue(static_cast<Library*>(handle)->stream,
                [run = Run(graph, std::move(memory), std::move(numbers), slice_of(config)), workspace,
                 bytes]() mutable {
                  std::memset(workspace, 0xff, bytes);
                  run();
                });
  return success;
}

const Functions functions = {
    [] { return static_cast<size_t>(simt::faults.cudnn_version); },
    [](Status status) {
      return status == execution_failed           ? "CUDNN_STATUS_EXECUTION_FAILED"
             : status == bad_param                ? "CUDNN_STATUS_BAD_PARAM"
             : status == device_allocation_failed ? "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"
                                                  : "CUDNN_STATUS_NOT_SUPPORTED";
    },
    [](Handle* handle) {
      *handle = new Library;
      return success;
    },
    [](Handle handle) {
      delete static_cast<Library*>(handle);
      return success;
    },
    [](Handle handle, cudaStream_t stream) {
      static_cast<Library*>(handle)->stream = stream;
      return success;
    },
    create,
    destroy,
    finalize,
    set,
    get,
    execute,
};

}  // namespace

Result<Functions> load(const std::string&) {
  if (!simt::faults.has_cudnn)
    return Error{Code::unsupported, "cuDNN: libcudnn.so.9: cannot open shared object file"};
  return functions;
}

}  // namespace stw::cuda::cudnn
