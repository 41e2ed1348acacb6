// A graph of operations as cuDNN describes it, and plans that execute it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/cuda/cudnn.h"

namespace stw::cuda::cudnn {

struct Dimensions { int64_t extent[4], stride[4]; };   // strides in elements

// Descriptors, destroyed together. The first error stays, and what follows it does nothing.
class Descriptors {
 public:
  explicit Descriptors(const Functions& functions) : f_(functions) {}
  ~Descriptors();
  Descriptors(const Descriptors&) = delete;

  const Functions& functions() const { return f_; }
  Status status() const { return status_; }
  Descriptor make(DescriptorType type);
  void set(Descriptor d, Attribute attribute, AttributeType type, int64_t count, const void* values);
  template <class T>
  void set(Descriptor d, Attribute attribute, AttributeType type, const T& value) { set(d, attribute, type, 1, &value); }
  void set(Descriptor d, Attribute attribute, Descriptor value) { set(d, attribute, AttributeType::descriptor, 1, &value); }
  void finalize(Descriptor d);

 private:
  const Functions f_;
  Status status_ = success;
  std::vector<Descriptor> all_;
};

// Operations in the order in which they are added. Computed in fp32.
class Graph {
 public:
  explicit Graph(const Functions& functions) : d_(functions) {}

  // In memory: fp32 at multiples of 4 bytes, others of 16.
  Descriptor tensor(DataType type, const Dimensions& dimensions, int64_t id);
  Descriptor number(int64_t id);                                                // an fp32 number of the host's, read at every launch
  Descriptor inner(DataType type, const Dimensions& dimensions);                // inside the graph alone

  void multiply(Descriptor a, Descriptor b, Descriptor c);                      // matrices of the last two dimensions
  void pointwise(Pointwise mode, Descriptor x, Descriptor y) { pointwise(mode, x, nullptr, y); }
  void pointwise(Pointwise mode, Descriptor x, Descriptor b, Descriptor y, Descriptor t = nullptr);
  void index(Descriptor x, Descriptor y, int64_t axis);                         // y: the position along an axis of x
  void reduce(Reduction what, Descriptor x, Descriptor y);                      // over the dimensions where y has 1
  void reshape(Descriptor x, Descriptor y);                                     // the same elements by other strides

  Descriptors& descriptors() { return d_; }
  const std::vector<Descriptor>& operations() const { return operations_; }

 private:
  Descriptor make_tensor(DataType type, const Dimensions& dimensions, int64_t id, bool is_virtual, bool is_by_value);
  void add_pointwise(Pointwise mode, Descriptor x, Descriptor b, Descriptor y, Descriptor t, int64_t axis);

  Descriptors d_;
  std::vector<Descriptor> operations_;
  int64_t next_inner_ = 1000;
};

// What executes a graph: one of cuDNN's engines, with its settings.
struct Engine {
  int64_t index = -1;
  std::vector<std::pair<int, int64_t>> knobs;
};

class Plan {
 public:
  // Of all engines that cuDNN proposes the first that is deterministic and needs no more scratch memory; null where there is none, or
  // with a status in `failed` that says nothing of engines: another one in its place would compute other bits.
  static std::unique_ptr<Plan> best(Handle handle, std::unique_ptr<Graph> graph, int64_t most_workspace, Status& failed);
  // By that engine. Null where it cannot, or has failed.
  static std::unique_ptr<Plan> make(Handle handle, std::unique_ptr<Graph> graph, const Engine& engine, int64_t most_workspace, Status& failed);

  const Engine& engine() const { return engine_; }
  struct Binding { int64_t id; const void* data; };
  Status execute(Handle handle, const std::vector<Binding>& bindings, void* workspace) const;

 private:
  explicit Plan(std::unique_ptr<Graph> graph) : graph_(std::move(graph)) {}
  Descriptor describe(Handle handle);
  bool finalize(Handle handle, Descriptor config, int64_t most_workspace, Status& failed);
  bool is_deterministic(Descriptor config);
  void read_engine(Descriptor config);

  std::unique_ptr<Graph> graph_;   // and all descriptors
  Engine engine_;
  Descriptor plan_ = nullptr;
};

}  // namespace stw::cuda::cudnn
