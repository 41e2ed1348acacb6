#include "src/data/host_tensor.h"

namespace stw {

HostShape& HostShape::add(Dimension dimension, const Graph& graph) {
  if (dimension != Dimension::none)
    dimensions[rank++] = {words_of(dimension), graph.size_of(dimension), dimension == Dimension::tokens};
  return *this;
}

std::string HostShape::rank_text() const {
  static constexpr const char* counts[] = {"no", "one", "two", "three", "four", "five"};
  static_assert(std::size(counts) == HostTensor::most_dimensions + 1);
  std::string text = counts[rank] + std::string(rank == 1 ? " dimension (" : " dimensions (");
  for (const HostDimension& d : all()) text += (&d == dimensions.data() ? "" : ", ") + std::string(d.name);
  return text + ")";
}

std::string HostShape::size_text() const {
  std::string text = "(";
  for (const HostDimension& d : all())
    text += (&d == dimensions.data() ? "" : ", ") + std::string(d.may_be_less ? "1 to " : "") +
            std::to_string(d.size);
  return text + ")";
}

Error wrong_tensor(const std::string& name, const std::string& what) {
  return {Code::bad_argument, "batch: " + name + ": " + what};
}

Status put_tensor(const std::string& name, const DLManagedTensorVersioned* managed, Format format,
                  const HostShape& expected, HostTensor& to) {
  if (to.data) return wrong_tensor(name, "the name appears twice");
  const bool is_float = format == Format::f32;
  if (!managed) return wrong_tensor(name, "the tensor is NULL");
  if (managed->version.major != DLPACK_MAJOR_VERSION)
    return wrong_tensor(name, "expected DLPack version 1, found " + std::to_string(managed->version.major));
  const DLTensor& t = managed->dl_tensor;
  if (t.device.device_type != kDLCPU && t.device.device_type != kDLCUDAHost)
    return wrong_tensor(name, "expected host memory");
  if (t.dtype.code != (is_float ? kDLFloat : kDLInt) || t.dtype.bits != 32 || t.dtype.lanes != 1)
    return wrong_tensor(name, is_float ? "expected float32" : "expected int32");
  if (t.ndim != static_cast<int32_t>(expected.rank))
    return wrong_tensor(name, "expected " + expected.rank_text() + ", found " + std::to_string(t.ndim));
  if (!t.shape) return wrong_tensor(name, "the shape is NULL");
  HostTensor tensor;
  tensor.format = format;
  tensor.rank = t.ndim;
  bool fits = true;
  std::string found;
  for (size_t d = 0; d < expected.rank; ++d) {
    tensor.shape[d] = t.shape[d];
    fits &= expected.dimensions[d].allows(t.shape[d]);
  }
  if (!fits) {
    for (size_t d = 0; d < expected.rank; ++d) found += (d > 0 ? ", " : "") + std::to_string(tensor.shape[d]);
    return wrong_tensor(name, "expected " + expected.size_text() + ", found (" + found + ")");
  }
  if (!t.data) return wrong_tensor(name, "the data is NULL");
  tensor.data = static_cast<const std::byte*>(t.data) + t.byte_offset;
  if (reinterpret_cast<uintptr_t>(tensor.data) % alignof(float) != 0)
    return wrong_tensor(name, "expected data aligned to 4 bytes");
  int64_t stride = 1;
  for (size_t d = expected.rank; d-- > 0; stride *= tensor.shape[d])
    tensor.strides[d] = t.strides ? t.strides[d] : stride;
  to = tensor;
  return ok();
}

}  // namespace stw
