// Graphs of operations in cuDNN's format, and plans that execute them.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/cuda/cudnn.h"

namespace stw::cuda::cudnn {

struct Dimensions {
  int64_t extent[4], stride[4];
};  // strides in elements

// Descriptors that are destroyed together. The first error is kept, and later calls do nothing.
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
  void set(Descriptor d, Attribute attribute, AttributeType type, const T& value) {
    set(d, attribute, type, 1, &value);
  }
  void set(Descriptor d, Attribute attribute, Descriptor value) {
    set(d, attribute, AttributeType::descriptor, 1, &value);
  }
  void finalize(Descriptor d);

 private:
  const Functions f_;
  Status status_ = success;
  std::vector<Descriptor> all_;
};

// Operations in the order in which they are added. They compute in fp32.
class OpGraph {
 public:
  explicit OpGraph(const Functions& functions) : d_(functions) {}

  // A tensor in memory, aligned to 4 bytes for fp32, else to 16.
  Descriptor tensor(DataType type, const Dimensions& dimensions, int64_t id);
  Descriptor number(int64_t id);  // an fp32 number in host memory, read at every launch
  Descriptor inner(DataType type, const Dimensions& dimensions);  // an intermediate result

  void multiply(Descriptor a, Descriptor b, Descriptor c);  // matrices of the last two dimensions
  void pointwise(Pointwise mode, Descriptor x, Descriptor y) { pointwise(mode, x, nullptr, y); }
  void pointwise(Pointwise mode, Descriptor x, Descriptor b, Descriptor y, Descriptor t = nullptr);
  void index(Descriptor x, Descriptor y, int64_t axis);     // y: the position along an axis of x
  void reduce(Reduction what, Descriptor x, Descriptor y);  // over the dimensions in which y has extent 1
  void reshape(Descriptor x, Descriptor y);                 // the same elements with other strides

  Descriptors& descriptors() { return d_; }
  const std::vector<Descriptor>& operations() const { return operations_; }

 private:
  Descriptor make_tensor(DataType type, const Dimensions& dimensions, int64_t id, bool is_virtual,
                         bool is_by_value);
  void add_pointwise(Pointwise mode, Descriptor x, Descriptor b, Descriptor y, Descriptor t, int64_t axis);

  Descriptors d_;
  std::vector<Descriptor> operations_;
  int64_t next_inner_ = 1000;
};

// One of cuDNN's engines, with its settings. It executes a graph.
struct Engine {
  int64_t index = -1;
  std::vector<std::pair<int, int64_t>> knobs;
};

class Plan {
 public:
  // A plan with the first engine, in cuDNN's order, that is deterministic and needs at most `most_workspace`
  // bytes. Null where there is none. Also null after a temporary failure, which is in `failed`: choosing
  // another engine then would change bits.
  static std::unique_ptr<Plan> best(Handle handle, std::unique_ptr<OpGraph> graph, int64_t most_workspace,
                                    Status& failed);
  // A plan with this engine. Null where the engine cannot execute the graph, or has failed.
  static std::unique_ptr<Plan> make(Handle handle, std::unique_ptr<OpGraph> graph, const Engine& engine,
                                    int64_t most_workspace, Status& failed);

  const Engine& engine() const { return engine_; }
  struct Binding {
    int64_t id;
    const void* data;
  };
  Status execute(Handle handle, const std::vector<Binding>& bindings, void* workspace) const;

 private:
  explicit Plan(std::unique_ptr<OpGraph> graph) : graph_(std::move(graph)) {}
  Descriptor describe(Handle handle);
  bool finalize(Handle handle, Descriptor config, int64_t most_workspace, Status& failed);
  bool is_deterministic(Descriptor config);
  void read_engine(Descriptor config);

  std::unique_ptr<OpGraph> graph_;  // owns all descriptors too
  Engine engine_;
  Descriptor plan_ = nullptr;
};

}  // namespace stw::cuda::cudnn
