// cvt: reads a number as one type, which may be narrower than its register, and writes it as another.
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tests/ptx/machine.h"
#include "tests/simt/fragments.h"

namespace ptx {
namespace {

// An integer to its destination register, with its sign if it has one.
template <class D, class S, class R>
void convert_into(Warp& w, const Instruction& i) {
  const char* const from = w.at<char>(i.operand[1]);
  const size_t stride = i.operand[1].bytes;
  R* const d = w.at<R>(i.operand[0]);
  for_lanes(w, [&](int l) {
    S s;
    std::memcpy(&s, from + static_cast<size_t>(l) * stride, sizeof s);
    d[l] = static_cast<R>(static_cast<D>(s));
  });
}
template <class D, class S>
void convert(Warp& w, const Instruction& i) {
  switch (i.operand[0].bytes) {
    case 2: return convert_into<D, S, std::conditional_t<std::is_signed_v<D>, int16_t, uint16_t>>(w, i);
    case 4: return convert_into<D, S, std::conditional_t<std::is_signed_v<D>, int32_t, uint32_t>>(w, i);
    default: return convert_into<D, S, std::conditional_t<std::is_signed_v<D>, int64_t, uint64_t>>(w, i);
  }
}
template <class S>
Run to_whole(std::string_view to) {
  if (to == "s8") return convert<int8_t, S>;
  if (to == "u8") return convert<uint8_t, S>;
  if (to == "s16") return convert<int16_t, S>;
  if (to == "u16") return convert<uint16_t, S>;
  if (to == "s32") return convert<int32_t, S>;
  if (to == "u32") return convert<uint32_t, S>;
  if (to == "s64") return convert<int64_t, S>;
  if (to == "u64") return convert<uint64_t, S>;
  return nullptr;
}

template <class D, class A, class F>
Run each(F) {
  return [](Warp& w, const Instruction& i) {
    D* const d = w.at<D>(i.operand[0]);
    const A* const a = w.at<A>(i.operand[1]);
    for_lanes(w, [&](int l) { d[l] = F{}(a[l]); });
  };
}

// Towards zero. A number that does not fit becomes the nearest one that does; NaN becomes 0.
template <class D, class A>
D cut_off(A a) {
  if (a != a) return 0;
  if (a <= static_cast<A>(std::numeric_limits<D>::min())) return std::numeric_limits<D>::min();
  if (a >= static_cast<A>(std::numeric_limits<D>::max())) return std::numeric_limits<D>::max();
  return static_cast<D>(a);
}
template <class D, class A>
Run cut() {
  return each<D, A>([](A a) { return cut_off<D>(a); });
}

// Two fp32 numbers to one register: the first operand becomes the upper half.
template <bool is_bf16>
void pack(Warp& w, const Instruction& i) {
  const float *const high = w.at<float>(i.operand[1]), *const low = w.at<float>(i.operand[2]);
  uint32_t* const d = w.at<uint32_t>(i.operand[0]);
  for_lanes(w, [&](int l) {
    d[l] = static_cast<uint32_t>(simt::half_bits(high[l], is_bf16)) << 16 | simt::half_bits(low[l], is_bf16);
  });
}

uint8_t bytes_of(std::string_view type) {
  return type.ends_with("64") ? 8 : type.ends_with("32") || type.ends_with("x2") ? 4 : 2;
}

Run resolve(std::string_view how, std::string_view to, std::string_view from) {
  if (how.empty()) {
    if (to == "f32" && from == "f16")
      return each<float, uint16_t>([](uint16_t a) { return simt::half_value(a, false); });
    if (to == "f64" && from == "f32")
      return each<double, float>([](float a) { return static_cast<double>(a); });
    if (from == "s8") return to_whole<int8_t>(to);
    if (from == "u8") return to_whole<uint8_t>(to);
    if (from == "s16") return to_whole<int16_t>(to);
    if (from == "u16") return to_whole<uint16_t>(to);
    if (from == "s32") return to_whole<int32_t>(to);
    if (from == "u32") return to_whole<uint32_t>(to);
    if (from == "s64") return to_whole<int64_t>(to);
    if (from == "u64") return to_whole<uint64_t>(to);
  }
  if (how == "rn") {
    if (to == "f32" && from == "f64")
      return each<float, double>([](double a) { return static_cast<float>(a); });
    if (to == "f32" && from == "u16")
      return each<float, uint16_t>([](uint16_t a) { return static_cast<float>(a); });
    if (to == "f32" && from == "s16")
      return each<float, int16_t>([](int16_t a) { return static_cast<float>(a); });
    if (to == "f32" && from == "s32")
      return each<float, int32_t>([](int32_t a) { return static_cast<float>(a); });
    if (to == "f32" && from == "u32")
      return each<float, uint32_t>([](uint32_t a) { return static_cast<float>(a); });
    if (to == "f32" && from == "s64")
      return each<float, int64_t>([](int64_t a) { return static_cast<float>(a); });
    if (to == "f32" && from == "u64")
      return each<float, uint64_t>([](uint64_t a) { return static_cast<float>(a); });
    if (to == "f64" && from == "s32")
      return each<double, int32_t>([](int32_t a) { return static_cast<double>(a); });
    if (to == "f64" && from == "u32")
      return each<double, uint32_t>([](uint32_t a) { return static_cast<double>(a); });
    if (to == "f64" && from == "s64")
      return each<double, int64_t>([](int64_t a) { return static_cast<double>(a); });
    if (to == "f64" && from == "u64")
      return each<double, uint64_t>([](uint64_t a) { return static_cast<double>(a); });
    if (to == "bf16x2" && from == "f32") return pack<true>;
    if (to == "f16x2" && from == "f32") return pack<false>;
  }
  if (how == "rni" && to == "f32" && from == "f32")
    return each<float, float>([](float a) { return std::nearbyint(a); });
  if (how == "rzi") {
    if (to == "s32" && from == "f32") return cut<int32_t, float>();
    if (to == "u32" && from == "f32") return cut<uint32_t, float>();
    if (to == "s64" && from == "f32") return cut<int64_t, float>();
    if (to == "s32" && from == "f64") return cut<int32_t, double>();
    if (to == "u32" && from == "f64") return cut<uint32_t, double>();
    if (to == "s64" && from == "f64") return cut<int64_t, double>();
    if (to == "u64" && from == "f64") return cut<uint64_t, double>();
  }
  return nullptr;
}

}  // namespace

Operation conversion(const Words& words) {
  if (words.front() != "cvt" || words.size() < 3 || words.size() > 4) return {};
  const std::string_view to = words[words.size() - 2], from = words.back();
  return {resolve(words.size() == 4 ? words[1] : std::string_view(), to, from),
          Kind::plain,
          {bytes_of(to), bytes_of(from), bytes_of(from)},
          false,
          true};
}

}  // namespace ptx
