// 4-bit matrices in bitsandbytes' file format (transformers, load_in_4bit with bnb_4bit_quant_type "nf4").
// The weight's tensor holds two codes a byte. Other tensors describe the codes. The name of such a tensor is
// the weight's name with one of these suffixes:
//   .quant_state.bitsandbytes__nf4   JSON: quant_type, blocksize (64), dtype, shape; nested_blocksize and
//                                    nested_offset where scales are quantized too
//   .quant_map                       the sixteen values of nf4
//   .absmax                          scales: fp32, or bytes that mean
//                                    .nested_quant_map[byte] · .nested_absmax[block] + nested_offset
// The codes are copied into the arena unchanged (kernels/contract/weight_codes.h), the scales in fp32. Source
// of the format: bitsandbytes, functional.py, QuantState.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "src/weights/safetensors.h"

namespace stw {

class Nf4Weight {
 public:
  // Whether the tensor holds nf4 codes; otherwise it is an array of numbers.
  static bool is_one(const SafetensorsReader& file, const SafetensorsInfo& weight);
  // The name of the weight to which a tensor with this name belongs; empty if it has none of the suffixes.
  static std::string_view weight_of(std::string_view part);
  // Errors: corrupt, unsupported_field; the message names file and tensor.
  static Result<Nf4Weight> open(const SafetensorsReader& file, const SafetensorsInfo& weight);

  const std::vector<int64_t>& shape() const { return shape_; }
  // The dtype before quantization, in which bitsandbytes computes.
  TensorDType dtype() const { return dtype_; }
  // Elements [first, first + count), in fp32. Allocates nothing.
  Status read(const SafetensorsReader& file, uint64_t first, uint64_t count, float* out) const;
  // Codes and scales of the same elements. `first` must begin a block.
  Status read_codes(const SafetensorsReader& file, uint64_t first, uint64_t count, uint8_t* codes,
                    float* scales) const;

 private:
  Nf4Weight() = default;
  Status read_scales(const SafetensorsReader& file, uint64_t first_block, uint64_t count, float* out) const;

  // Owned by the reader.
  const SafetensorsInfo *codes_ = nullptr, *scales_ = nullptr, *nested_scales_ = nullptr;
  std::vector<int64_t> shape_;
  TensorDType dtype_ = TensorDType::f32;
  uint64_t nested_block_ = 0;  // scales that share a nested scale
  float nested_offset_ = 0;
  std::array<float, 256> nested_values_{};
};

}  // namespace stw
