#include "src/weights/nf4_weights.h"

#include <algorithm>
#include <cstring>

#include "kernels/contract/sizes.h"
#include "kernels/contract/weight_codes.h"
#include "planner/base/json.h"

namespace stw {

namespace {

constexpr const char* state_suffix = ".quant_state.bitsandbytes__nf4";
constexpr uint64_t largest_state = 4096;     // limit of its bytes
constexpr uint64_t elements_at_once = 4096;  // on the stack
constexpr uint64_t block = kernels::weight_block, scales_at_once = elements_at_once / block + 1;

Error wrong(const SafetensorsReader& file, const SafetensorsInfo& weight, Code code,
            const std::string& what) {
  return {code, file.path_of(weight) + ": tensor " + weight.name + ": " + what};
}

// The tensor that belongs to a weight, with `elements` elements.
Result<const SafetensorsInfo*> part_of(const SafetensorsReader& file, const SafetensorsInfo& weight,
                                       const char* suffix, TensorDType dtype, uint64_t elements) {
  const SafetensorsInfo* found = file.find(weight.name + suffix);
  if (!found)
    return wrong(file, weight, Code::corrupt,
                 std::string("expected ") + suffix + " next to its codes, found none");
  if (found->dtype != dtype || found->bytes != size_mul(elements, dtype_bytes(dtype)))
    return wrong(file, weight, Code::corrupt,
                 std::string("expected ") + suffix + " of " + std::to_string(elements) + " elements in " +
                     std::string(dtype_name(dtype)) + ", found " + std::to_string(found->bytes) +
                     " bytes in " + found->format);
  return found;
}

template <size_t count>
Status read_floats(const SafetensorsReader& file, const SafetensorsInfo& from, std::array<float, count>& to) {
  return file.read(from, 0, std::as_writable_bytes(std::span(to)));
}

}  // namespace

bool Nf4Weight::is_one(const SafetensorsReader& file, const SafetensorsInfo& weight) {
  return file.find(weight.name + state_suffix) != nullptr;
}

std::string_view Nf4Weight::weight_of(std::string_view part) {
  constexpr std::string_view suffixes[] = {state_suffix, ".absmax", ".quant_map", ".nested_absmax",
                                           ".nested_quant_map"};
  for (const std::string_view suffix : suffixes)
    if (part.ends_with(suffix)) return part.substr(0, part.size() - suffix.size());
  return {};
}

Result<Nf4Weight> Nf4Weight::open(const SafetensorsReader& file, const SafetensorsInfo& weight) {
  const auto bad = [&](const std::string& what, Code code = Code::corrupt) {
    return wrong(file, weight, code, what);
  };
  const SafetensorsInfo* const about = file.find(weight.name + state_suffix);
  if (!about || about->dtype != TensorDType::u8 || about->bytes > largest_state)
    return bad("expected its quant_state as JSON in bytes");
  std::string text(about->bytes, '\0');
  STW_TRY(file.read(*about, 0, std::as_writable_bytes(std::span(text))));
  auto state = parse_json(text);
  if (!state || !state->is_object()) return bad("its quant_state is no JSON object");
  Nf4Weight w;
  w.codes_ = &weight;
  const auto type = get_string(*state, "quant_type"), dtype = get_string(*state, "dtype");
  if (!type || *type != "nf4") return bad("expected quant_type \"nf4\"", Code::unsupported_field);
  const std::pair<const char*, TensorDType> dtypes[] = {
      {"float32", TensorDType::f32}, {"bfloat16", TensorDType::bf16}, {"float16", TensorDType::f16}};
  const auto* known = std::find_if(std::begin(dtypes), std::end(dtypes),
                                   [&](const auto& d) { return dtype && *dtype == d.first; });
  if (known == std::end(dtypes)) return bad("its quant_state has an unknown dtype", Code::unsupported_field);
  w.dtype_ = known->second;
  const auto shape = get_array(*state, "shape");
  if (!shape) return bad("its quant_state has no shape");
  uint64_t elements = 1;
  for (const Json& extent : (*shape)->elements()) {
    const int64_t* n = extent.as_int();
    if (!n || *n < 0) return bad("its quant_state has no shape");
    w.shape_.push_back(*n);
    elements = size_mul(elements, static_cast<uint64_t>(*n));
  }
  const auto size = get_uint(*state, "blocksize");
  if (!size || *size != block)
    return bad("expected a blocksize of 64, found " + (size ? std::to_string(*size) : "none"),
               Code::unsupported_field);
  // The codes are bytes, whatever dtype stores them (bnb_4bit_quant_storage).
  if (weight.bytes != ceil_div(elements, 2))
    return bad("expected " + std::to_string(ceil_div(elements, 2)) + " bytes of codes, found " +
               std::to_string(weight.bytes));
  STW_ASSIGN(map, part_of(file, weight, ".quant_map", TensorDType::f32, 16));
  std::array<float, 16> values;
  STW_TRY(read_floats(file, *map, values));
  if (std::memcmp(values.data(), kernels::nf4_values.of, sizeof values) != 0)
    return bad("its quant_map holds other values than those of nf4", Code::unsupported_field);
  const uint64_t blocks = ceil_div(elements, block);
  const bool is_nested = file.find(weight.name + ".nested_absmax") != nullptr;
  STW_ASSIGN(scales,
             part_of(file, weight, ".absmax", is_nested ? TensorDType::u8 : TensorDType::f32, blocks));
  w.scales_ = scales;
  if (!is_nested) return w;
  const auto nested_size = get_uint(*state, "nested_blocksize");
  const auto offset = get_double(*state, "nested_offset");
  if (!nested_size || *nested_size == 0 || !offset)
    return bad("its quant_state has no nested_blocksize and nested_offset");
  w.nested_block_ = *nested_size;
  w.nested_offset_ = static_cast<float>(*offset);
  STW_ASSIGN(nested_map, part_of(file, weight, ".nested_quant_map", TensorDType::f32, 256));
  STW_TRY(read_floats(file, *nested_map, w.nested_values_));
  STW_ASSIGN(nested,
             part_of(file, weight, ".nested_absmax", TensorDType::f32, ceil_div(blocks, w.nested_block_)));
  w.nested_scales_ = nested;
  return w;
}

Status Nf4Weight::read_scales(const SafetensorsReader& file, uint64_t first_block, uint64_t count,
                              float* out) const {
  if (!nested_scales_)
    return file.read(*scales_, first_block * sizeof(float), std::as_writable_bytes(std::span(out, count)));
  std::array<uint8_t, scales_at_once> codes;
  uint64_t known = ~uint64_t{0};
  float scale = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (i % scales_at_once == 0)
      STW_TRY(
          file.read(*scales_, first_block + i,
                    std::as_writable_bytes(std::span(codes.data(), std::min(count - i, scales_at_once)))));
    const uint64_t nested = (first_block + i) / nested_block_;
    if (nested != known)
      STW_TRY(
          file.read(*nested_scales_, nested * sizeof(float), std::as_writable_bytes(std::span(&scale, 1))));
    known = nested;
    // Rounded before the sum, as in bitsandbytes.
    const float product = nested_values_[codes[i % scales_at_once]] * scale;
    out[i] = product + nested_offset_;
  }
  return ok();
}

Status Nf4Weight::read_codes(const SafetensorsReader& file, uint64_t first, uint64_t count, uint8_t* codes,
                             float* scales) const {
  STW_TRY(file.read(*codes_, first / 2, std::as_writable_bytes(std::span(codes, ceil_div(count, 2)))));
  return read_scales(file, first / block, ceil_div(count, block), scales);
}

Status Nf4Weight::read(const SafetensorsReader& file, uint64_t first, uint64_t count, float* out) const {
  std::array<uint8_t, elements_at_once / 2 + block> codes;
  std::array<float, scales_at_once + 1> scales;
  for (uint64_t done = 0; done < count;) {
    const uint64_t begin = first + done, n = std::min(count - done, elements_at_once), end = begin + n,
                   start = begin / block * block;
    STW_TRY(read_codes(file, start, end - start, codes.data(), scales.data()));
    for (uint64_t i = begin; i < end; ++i) {
      const uint8_t byte = codes[(i - start) / 2];
      out[i - first] =
          kernels::nf4_values.of[i % 2 == 0 ? byte >> 4 : byte & 15] * scales[(i - start) / block];
    }
    done += n;
  }
  return ok();
}

}  // namespace stw
