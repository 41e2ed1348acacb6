// The part of DLPack 1.0's ABI that the library reads and writes (https://dmlc.github.io/dlpack, "C API"), under its own
// names so that a host may include the original header beside it.
#pragma once
#include <cstdint>

namespace stw::dlpack {

enum : int32_t { device_cpu = 1, device_cuda = 2, device_cuda_host = 3 };
enum : uint8_t { code_int = 0, code_float = 2, code_bfloat = 4 };
inline constexpr uint32_t major_version = 1;

struct Version { uint32_t major, minor; };
struct Device { int32_t type, id; };
struct DataType { uint8_t code, bits; uint16_t lanes; };
struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;        // in elements; null: compact, row-major
  uint64_t byte_offset;
};
struct Managed {           // DLManagedTensorVersioned
  Version version;
  void* context;
  void (*deleter)(Managed* self);
  uint64_t flags;
  Tensor tensor;
};

}  // namespace stw::dlpack
