// The part of cuDNN's C interface that we call, its graph API. It is declared here, so that a build needs
// neither NVIDIA's headers nor the library, and programs with our own attention run without it. Names and
// values are those of cudnn_graph.h, and a test compares them. Source:
// https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-graph-library.html
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "planner/base/result.h"

namespace stw::cuda::cudnn {

using Status = int;        // cudnnStatus_t
using Handle = void*;      // cudnnHandle_t
using Descriptor = void*;  // cudnnBackendDescriptor_t

inline constexpr Status success = 0, not_supported = 3000, host_allocation_failed = 4003,
                        device_allocation_failed = 4004, execution_failed = 5000;

// Up to 9.15.0, attention gradients replayed by CUDA graphs read out of bounds unless the number of keys is a
// multiple of 128. See the release notes of cudnn-frontend 1.16.0,
// https://github.com/NVIDIA/cudnn-frontend/releases/tag/v1.16.0
inline constexpr size_t oldest_version = 91501;
inline std::string version_text(size_t v) {
  return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100);
}

enum class DescriptorType : int {
  pointwise = 0,
  engine = 2,
  engine_config = 3,
  engine_heuristics = 4,
  execution_plan = 5,
  knob_choice = 7,
  pointwise_operation = 13,
  operation_graph = 15,
  variant_pack = 16,
  tensor = 17,
  matmul = 18,
  matmul_operation = 19,
  reduction = 21,
  reduction_operation = 22,
  reshape_operation = 31
};

enum class Attribute : int {
  pointwise_mode = 0,
  pointwise_precision = 1,
  pointwise_axis = 9,
  heuristics_mode = 200,
  heuristics_graph = 201,
  heuristics_results = 202,
  config_engine = 300,
  config_knob_choices = 302,
  plan_handle = 400,
  plan_config = 401,
  plan_workspace = 402,
  knob_type = 600,
  knob_value = 601,
  pointwise_descriptor = 750,
  pointwise_x = 751,
  pointwise_b = 752,
  pointwise_y = 753,
  pointwise_t = 758,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_type = 901,
  tensor_dimensions = 902,
  tensor_strides = 903,
  tensor_id = 906,
  tensor_is_virtual = 907,
  tensor_is_by_value = 908,
  pack_ids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
  engine_graph = 1300,
  engine_index = 1301,
  engine_notes = 1303,
  matmul_precision = 1500,
  matmul_a = 1520,
  matmul_b = 1521,
  matmul_c = 1522,
  matmul_descriptor = 1523,
  reduction_operator = 1600,
  reduction_precision = 1601,
  reduction_x = 1610,
  reduction_y = 1611,
  reduction_descriptor = 1612,
  reshape_x = 2200,
  reshape_y = 2201
};

enum class AttributeType : int {
  handle = 0,
  data_type = 1,
  boolean = 2,
  int64 = 3,
  pointer = 6,
  heuristics_mode = 8,
  knob_type = 9,
  numerical_note = 11,
  pointwise_mode = 14,
  descriptor = 15,
  reduction_operator = 18
};

enum class DataType : int { f32 = 0, f16 = 2, i32 = 4, bf16 = 9, boolean = 11 };
enum class Pointwise : int {
  add = 0,
  mul = 1,
  div = 6,
  sub = 9,
  exp = 13,
  log = 15,
  greater_or_equal = 303,
  index = 501,
  select = 601
};
enum class Reduction : int { add = 0, max = 3 };
enum class HeuristicsMode : int { a = 3 };
enum class NumericalNote : int { nondeterministic = 4 };

#define STW_CUDNN_FUNCTIONS(X)                                                                              \
  X(GetVersion, size_t, ())                                                                                 \
  X(GetErrorString, const char*, (Status))                                                                  \
  X(Create, Status, (Handle*))                                                                              \
  X(Destroy, Status, (Handle))                                                                              \
  X(SetStream, Status, (Handle, cudaStream_t))                                                              \
  X(BackendCreateDescriptor, Status, (DescriptorType, Descriptor*))                                         \
  X(BackendDestroyDescriptor, Status, (Descriptor))                                                         \
  X(BackendFinalize, Status, (Descriptor))                                                                  \
  X(BackendSetAttribute, Status, (Descriptor, Attribute, AttributeType, int64_t count, const void* values)) \
  X(BackendGetAttribute, Status,                                                                            \
    (Descriptor, Attribute, AttributeType, int64_t room, int64_t * count, void* values))                    \
  X(BackendExecute, Status, (Handle, Descriptor plan, Descriptor variant_pack))

struct Functions {
#define STW_CUDNN_MEMBER(name, Returned, arguments) Returned(*name) arguments;
  STW_CUDNN_FUNCTIONS(STW_CUDNN_MEMBER)
#undef STW_CUDNN_MEMBER
};

// Loads the library, which stays loaded. An empty path: libcudnn.so.9 from the system's search path. Errors:
// unsupported, with what to install. Any thread.
Result<Functions> load(const std::string& path);

}  // namespace stw::cuda::cudnn
