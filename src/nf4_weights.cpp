#include "src/nf4_weights.h"

#include <algorithm>

#include "planner/json.h"
#include "planner/sizes.h"

namespace stw {

namespace {

constexpr const char* state_suffix = ".quant_state.bitsandbytes__nf4";
constexpr uint64_t largest_state = 4096;        // bytes of it
constexpr uint64_t elements_at_once = 4096;     // on the stack
constexpr uint64_t smallest_block = 32;

Error wrong(const SafetensorsReader& file, const SafetensorsInfo& weight, Code code, const std::string& what) {
  return {code, file.path_of(weight) + ": tensor " + weight.name + ": " + what};
}

// The tensor beside the weight, of so many elements.
Result<const SafetensorsInfo*> part_of(const SafetensorsReader& file, const SafetensorsInfo& weight, const char* suffix, TensorDType dtype, uint64_t elements) {
  const SafetensorsInfo* found = file.find(weight.name + suffix);
  if (!found) return wrong(file, weight, Code::corrupt, std::string("expected ") + suffix + " beside its codes, found none");
  if (found->dtype != dtype || found->bytes != size_mul(elements, dtype_bytes(dtype)))
    return wrong(file, weight, Code::corrupt, std::string("expected ") + suffix + " of " + std::to_string(elements) + " elements in " + std::string(dtype_name(dtype)) +
                                                  ", found " + std::to_string(found->bytes) + " bytes in " + found->format);
  return found;
}

template <size_t count>
Status read_floats(const SafetensorsReader& file, const SafetensorsInfo& from, std::array<float, count>& to) {
  return file.read(from, 0, std::as_writable_bytes(std::span(to)));
}

}  // namespace

bool Nf4Weight::is_one(const SafetensorsReader& file, const SafetensorsInfo& weight) { return file.find(weight.name + state_suffix) != nullptr; }

Result<Nf4Weight> Nf4Weight::open(const SafetensorsReader& file, const SafetensorsInfo& weight) {
  const auto bad = [&](const std::string& what, Code code = Code::corrupt) { return wrong(file, weight, code, what); };
  const SafetensorsInfo* const about = file.find(weight.name + state_suffix);
  if (!about || about->dtype != TensorDType::u8 || about->bytes > largest_state) return bad("expected its quant_state as JSON in bytes");
  std::string text(about->bytes, '\0');
  STW_TRY(file.read(*about, 0, std::as_writable_bytes(std::span(text))));
  auto state = parse_json(text);
  if (!state || !state->is_object()) return bad("its quant_state is no JSON object");
  Nf4Weight w;
  w.codes_ = &weight;
  const auto type = get_string(*state, "quant_type"), dtype = get_string(*state, "dtype");
  if (!type || *type != "nf4") return bad("expected quant_type \"nf4\"", Code::unsupported_field);
  const std::pair<const char*, TensorDType> dtypes[] = {{"float32", TensorDType::f32}, {"bfloat16", TensorDType::bf16}, {"float16", TensorDType::f16}};
  const auto* known = std::find_if(std::begin(dtypes), std::end(dtypes), [&](const auto& d) { return dtype && *dtype == d.first; });
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
  const auto block_of = [&](const char* key) -> uint64_t {
    const auto n = get_uint(*state, key);
    return n && *n >= smallest_block && *n <= elements_at_once && (*n & (*n - 1)) == 0 ? *n : 0;
  };
  w.block_ = block_of("blocksize");
  if (w.block_ == 0) return bad("its quant_state has no blocksize that is known", Code::unsupported_field);
  if (weight.dtype != TensorDType::u8 || weight.bytes != ceil_div(elements, 2))
    return bad("expected " + std::to_string(ceil_div(elements, 2)) + " bytes of codes in U8, found " + std::to_string(weight.bytes) + " in " + weight.format,
               weight.dtype == TensorDType::u8 ? Code::corrupt : Code::unsupported_field);
  STW_ASSIGN(map, part_of(file, weight, ".quant_map", TensorDType::f32, 16));
  STW_TRY(read_floats(file, *map, w.values_));
  const uint64_t blocks = ceil_div(elements, w.block_);
  const bool is_nested = file.find(weight.name + ".nested_absmax") != nullptr;
  STW_ASSIGN(scales, part_of(file, weight, ".absmax", is_nested ? TensorDType::u8 : TensorDType::f32, blocks));
  w.scales_ = scales;
  if (!is_nested) return w;
  w.nested_block_ = block_of("nested_blocksize");
  const auto offset = get_double(*state, "nested_offset");
  if (w.nested_block_ == 0 || !offset) return bad("its quant_state has no nested_blocksize and nested_offset that are known", Code::unsupported_field);
  w.nested_offset_ = static_cast<float>(*offset);
  STW_ASSIGN(nested_map, part_of(file, weight, ".nested_quant_map", TensorDType::f32, 256));
  STW_TRY(read_floats(file, *nested_map, w.nested_values_));
  STW_ASSIGN(nested, part_of(file, weight, ".nested_absmax", TensorDType::f32, ceil_div(blocks, w.nested_block_)));
  w.nested_scales_ = nested;
  return w;
}

Status Nf4Weight::read_scales(const SafetensorsReader& file, uint64_t first_block, uint64_t count, float* out) const {
  if (!nested_scales_) return file.read(*scales_, first_block * sizeof(float), std::as_writable_bytes(std::span(out, count)));
  std::array<uint8_t, elements_at_once / smallest_block + 2> codes;
  STW_TRY(file.read(*scales_, first_block, std::as_writable_bytes(std::span(codes.data(), count))));
  uint64_t known = ~uint64_t{0};
  float scale = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t nested = (first_block + i) / nested_block_;
    if (nested != known) STW_TRY(file.read(*nested_scales_, nested * sizeof(float), std::as_writable_bytes(std::span(&scale, 1))));
    known = nested;
    const float product = nested_values_[codes[i]] * scale;   // rounded before it is added
    out[i] = product + nested_offset_;
  }
  return ok();
}

Status Nf4Weight::read(const SafetensorsReader& file, uint64_t first, uint64_t count, float* out) const {
  std::array<uint8_t, elements_at_once / 2 + 1> codes;
  std::array<float, elements_at_once / smallest_block + 2> scales;
  for (uint64_t done = 0; done < count;) {
    const uint64_t begin = first + done, n = std::min(count - done, elements_at_once), end = begin + n;
    STW_TRY(file.read(*codes_, begin / 2, std::as_writable_bytes(std::span(codes.data(), ceil_div(end, 2) - begin / 2))));
    STW_TRY(read_scales(file, begin / block_, (end - 1) / block_ - begin / block_ + 1, scales.data()));
    for (uint64_t i = begin; i < end; ++i) {
      const uint8_t byte = codes[i / 2 - begin / 2];
      out[i - first] = values_[i % 2 == 0 ? byte >> 4 : byte & 15] * scales[i / block_ - begin / block_];
    }
    done += n;
  }
  return ok();
}

}  // namespace stw
