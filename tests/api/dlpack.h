// DLPack 1.0's managed tensor as a host sees it (https://dmlc.github.io/dlpack, "C API"): stowage.h only names it.
#pragma once
#include <cstdint>

struct DLManagedTensorVersioned {
  struct { uint32_t major, minor; } version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  struct {
    void* data;
    struct { int32_t device_type, device_id; } device;
    int32_t ndim;
    struct { uint8_t code, bits; uint16_t lanes; } dtype;
    int64_t* shape;
    int64_t* strides;      // in elements; null: compact, row-major
    uint64_t byte_offset;
  } dl_tensor;
};
static_assert(sizeof(DLManagedTensorVersioned) == 80);
