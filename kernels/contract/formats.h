// How tensors are stored. The planner counts bytes by these formats, and the kernels read and write them.
#pragma once
#include <cassert>
#include <cstdint>

namespace stw::kernels {

// The last two are weights as codes of 4 or 8 bits. The scales, one for each block of codes, follow the codes
// (weight_codes.h).
enum class Format : uint8_t { f32, bf16, i16, i32, u8, f64, f16, nf4, int8 };

inline bool is_quantized(Format format) { return format == Format::nf4 || format == Format::int8; }

// The formats that kernels compute with: the type of a matrix operand.
enum class DType : uint8_t { f32 = 0, bf16 = 1, f16 = 2 };

inline DType dtype_of(Format format) {
  assert(format == Format::f32 || format == Format::bf16 || format == Format::f16);
  return format == Format::bf16 ? DType::bf16 : format == Format::f16 ? DType::f16 : DType::f32;
}

enum class WeightCodes : uint8_t { nf4 = 0, int8 = 1 };

inline WeightCodes weight_codes_of(Format format) {
  assert(is_quantized(format));
  return format == Format::nf4 ? WeightCodes::nf4 : WeightCodes::int8;
}

}  // namespace stw::kernels
