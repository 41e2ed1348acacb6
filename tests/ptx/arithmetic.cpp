// Arithmetic within one lane.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "tests/ptx/machine.h"
#include "tests/simt/special.h"

namespace ptx {
namespace {

template <class T>
struct Wider;
template <>
struct Wider<int16_t> {
  using type = int32_t;
};
template <>
struct Wider<uint16_t> {
  using type = uint32_t;
};
template <>
struct Wider<int32_t> {
  using type = int64_t;
};
template <>
struct Wider<uint32_t> {
  using type = uint64_t;
};
template <>
struct Wider<int64_t> {
  using type = __int128;
};
template <>
struct Wider<uint64_t> {
  using type = unsigned __int128;
};

// D: type of the result; A, B, C: of the operands; F: of a lambda without captures.
template <class D, class A, class F>
Operation unary(F) {
  return {[](Warp& w, const Instruction& i) {
            D* const d = w.at<D>(i.operand[0]);
            const A* const a = w.at<A>(i.operand[1]);
            for_lanes(w, [&](int l) { d[l] = static_cast<D>(F{}(a[l])); });
          },
          Kind::plain,
          {sizeof(D), sizeof(A)}};
}
template <class D, class A, class B, class F>
Operation binary(F) {
  return {[](Warp& w, const Instruction& i) {
            D* const d = w.at<D>(i.operand[0]);
            const A* const a = w.at<A>(i.operand[1]);
            const B* const b = w.at<B>(i.operand[2]);
            for_lanes(w, [&](int l) { d[l] = static_cast<D>(F{}(a[l], b[l])); });
          },
          Kind::plain,
          {sizeof(D), sizeof(A), sizeof(B)}};
}
template <class D, class A, class B, class C, class F>
Operation ternary(F) {
  return {[](Warp& w, const Instruction& i) {
            D* const d = w.at<D>(i.operand[0]);
            const A* const a = w.at<A>(i.operand[1]);
            const B* const b = w.at<B>(i.operand[2]);
            const C* const c = w.at<C>(i.operand[3]);
            for_lanes(w, [&](int l) { d[l] = static_cast<D>(F{}(a[l], b[l], c[l])); });
          },
          Kind::plain,
          {sizeof(D), sizeof(A), sizeof(B), sizeof(C)}};
}

Operation insert_bits() {
  return {[](Warp& w, const Instruction& i) {
            for_lanes(w, [&](int l) {
              const uint32_t a = w.at<uint32_t>(i.operand[1])[l], b = w.at<uint32_t>(i.operand[2])[l];
              const uint32_t at = w.at<uint32_t>(i.operand[3])[l] & 0xff,
                             length = w.at<uint32_t>(i.operand[4])[l] & 0xff;
              uint32_t x = b;
              for (uint32_t k = 0; k < length && at + k < 32; ++k)
                x = (x & ~(1u << (at + k))) | ((a >> k & 1u) << (at + k));
              w.at<uint32_t>(i.operand[0])[l] = x;
            });
          },
          Kind::plain,
          {4, 4, 4, 4, 4}};
}

// `length` bits of a from bit `at` on. If signed, the last of them fills the bits above.
template <class T>
uint32_t extracted(uint32_t a, uint32_t at, uint32_t length) {
  at &= 255, length &= 255;
  if (length == 0) return 0;
  const uint32_t last = std::min(at + length - 1, 31u), sign = std::is_signed_v<T> ? a >> last & 1 : 0;
  uint32_t x = 0;
  for (uint32_t k = 0; k < 32; ++k) x |= (k < length && at + k < 32 ? a >> (at + k) & 1 : sign) << k;
  return x;
}

uint32_t permuted(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t x = 0;
  for (int k = 0; k < 4; ++k) {
    const uint32_t choice = selector >> 4 * k & 15;
    uint32_t byte = static_cast<uint32_t>(bytes >> 8 * (choice & 7) & 255);
    if (choice & 8) byte = byte & 128 ? 255 : 0;  // Its sign.
    x |= byte << 8 * k;
  }
  return x;
}

// The comparison of two numbers: 1 or 0.
template <class T>
Operation comparison(std::string_view how) {
  if (how == "eq") return binary<uint8_t, T, T>([](T a, T b) { return a == b; });
  if (how == "lt" || how == "lo") return binary<uint8_t, T, T>([](T a, T b) { return a < b; });
  if (how == "le" || how == "ls") return binary<uint8_t, T, T>([](T a, T b) { return a <= b; });
  if (how == "gt" || how == "hi") return binary<uint8_t, T, T>([](T a, T b) { return a > b; });
  if (how == "ge" || how == "hs") return binary<uint8_t, T, T>([](T a, T b) { return a >= b; });
  if constexpr (std::is_floating_point_v<T>) {
    if (how == "ne") return binary<uint8_t, T, T>([](T a, T b) { return a < b || a > b; });
    if (how == "equ") return binary<uint8_t, T, T>([](T a, T b) { return !(a < b || a > b); });
    if (how == "neu") return binary<uint8_t, T, T>([](T a, T b) { return a != b; });
    if (how == "ltu") return binary<uint8_t, T, T>([](T a, T b) { return !(a >= b); });
    if (how == "leu") return binary<uint8_t, T, T>([](T a, T b) { return !(a > b); });
    if (how == "gtu") return binary<uint8_t, T, T>([](T a, T b) { return !(a <= b); });
    if (how == "geu") return binary<uint8_t, T, T>([](T a, T b) { return !(a < b); });
    if (how == "num") return binary<uint8_t, T, T>([](T a, T b) { return a == a && b == b; });
    if (how == "nan") return binary<uint8_t, T, T>([](T a, T b) { return a != a || b != b; });
  } else {
    if (how == "ne") return binary<uint8_t, T, T>([](T a, T b) { return a != b; });
  }
  return {};
}

// The result of a division by zero is undefined. Here it must not end the process.
template <class T>
Operation integer(std::string_view name, std::string_view how) {
  using U = std::make_unsigned_t<T>;
  using W = typename Wider<T>::type;
  constexpr uint32_t bits = 8 * sizeof(T);
  if (name == "add") return binary<T, T, T>([](T a, T b) { return U(U(a) + U(b)); });
  if (name == "sub") return binary<T, T, T>([](T a, T b) { return U(U(a) - U(b)); });
  if (name == "mul" && how == "lo") return binary<T, T, T>([](T a, T b) { return U(W(a) * W(b)); });
  if (name == "mul" && how == "hi")
    return binary<T, T, T>([](T a, T b) { return T(W(W(a) * W(b)) >> bits); });
  if (name == "mul" && how == "wide")
    return sizeof(T) < 8 ? binary<W, T, T>([](T a, T b) { return W(W(a) * W(b)); }) : Operation{};
  if (name == "mad" && how == "lo")
    return ternary<T, T, T, T>([](T a, T b, T c) { return U(U(W(a) * W(b)) + U(c)); });
  if (name == "mad" && how == "wide")
    return sizeof(T) < 8 ? ternary<W, T, T, W>([](T a, T b, W c) { return W(W(a) * W(b) + c); })
                         : Operation{};
  if (name == "div") return binary<T, T, T>([](T a, T b) { return b == 0 ? T(-1) : T(W(a) / W(b)); });
  if (name == "rem") return binary<T, T, T>([](T a, T b) { return b == 0 ? a : T(W(a) % W(b)); });
  if (name == "min") return binary<T, T, T>([](T a, T b) { return a < b ? a : b; });
  if (name == "max") return binary<T, T, T>([](T a, T b) { return a > b ? a : b; });
  if (name == "neg") return unary<T, T>([](T a) { return U(U(0) - U(a)); });
  if (name == "abs") return unary<T, T>([](T a) { return a < 0 ? U(U(0) - U(a)) : U(a); });
  if (name == "and") return binary<T, T, T>([](T a, T b) { return T(a & b); });
  if (name == "or") return binary<T, T, T>([](T a, T b) { return T(a | b); });
  if (name == "xor") return binary<T, T, T>([](T a, T b) { return T(a ^ b); });
  if (name == "not") return unary<T, T>([](T a) { return T(~a); });
  if (name == "shl")
    return binary<T, T, uint32_t>([](T a, uint32_t n) { return n >= bits ? U(0) : U(U(a) << n); });
  if (name == "shr")
    return binary<T, T, uint32_t>([](T a, uint32_t n) { return n < bits ? T(a >> n) : T(a < 0 ? -1 : 0); });
  if (name == "setp") return comparison<T>(how);
  if (name == "mov") return unary<T, T>([](T a) { return a; });
  if (name == "selp") return ternary<T, T, T, uint8_t>([](T a, T b, uint8_t p) { return p ? a : b; });
  return {};
}

template <class T>
Operation floating(std::string_view name, std::string_view how) {
  if (how == "rn" || how.empty()) {  // To nearest is the default.
    if (name == "add") return binary<T, T, T>([](T a, T b) { return a + b; });
    if (name == "sub") return binary<T, T, T>([](T a, T b) { return a - b; });
    if (name == "mul") return binary<T, T, T>([](T a, T b) { return a * b; });
    if (name == "fma") return ternary<T, T, T, T>([](T a, T b, T c) { return std::fma(a, b, c); });
    if (name == "div") return binary<T, T, T>([](T a, T b) { return a / b; });
    if (name == "sqrt") return unary<T, T>([](T a) { return std::sqrt(a); });
    if (name == "rcp") return unary<T, T>([](T a) { return T(1) / a; });
  }
  // Within 2 ulp on a device.
  if (name == "div" && how == "full") return binary<T, T, T>([](T a, T b) { return a / b; });
  if (name == "neg") return unary<T, T>([](T a) { return -a; });
  if (name == "abs") return unary<T, T>([](T a) { return std::fabs(a); });
  // If one operand is NaN, the result is the other one; -0 is below +0.
  if (name == "min")
    return binary<T, T, T>([](T a, T b) {
      return a != a ? b : b != b ? a : a < b || (a == b && std::signbit(a)) ? a : b;
    });
  if (name == "max")
    return binary<T, T, T>([](T a, T b) {
      return a != a ? b : b != b ? a : a > b || (a == b && !std::signbit(a)) ? a : b;
    });
  if (name == "setp") return comparison<T>(how);
  if (name == "mov") return unary<T, T>([](T a) { return a; });
  if (name == "selp") return ternary<T, T, T, uint8_t>([](T a, T b, uint8_t p) { return p ? a : b; });
  return {};
}

// Operations of the special function unit.
Operation special(std::string_view name) {
  if (name == "ex2") return unary<float, float>([](float a) { return simt::approximate_exp2(a); });
  if (name == "rcp") return unary<float, float>([](float a) { return simt::approximate_inverse(a); });
  return {};
}

Operation predicate(std::string_view name) {
  using P = uint8_t;
  if (name == "and") return binary<P, P, P>([](P a, P b) { return P(a & b); });
  if (name == "or") return binary<P, P, P>([](P a, P b) { return P(a | b); });
  if (name == "xor") return binary<P, P, P>([](P a, P b) { return P(a ^ b); });
  if (name == "not") return unary<P, P>([](P a) { return P(a ^ 1); });
  if (name == "mov") return unary<P, P>([](P a) { return a; });
  return {};
}

// The lower half is the first one.
template <class Whole, class Half>
void split_halves(Warp& w, const Instruction& i) {
  for_lanes(w, [&](int l) {
    const Whole x = w.at<Whole>(i.operand[2])[l];
    w.at<Half>(i.operand[0])[l] = static_cast<Half>(x);
    w.at<Half>(i.operand[1])[l] = static_cast<Half>(x >> 8 * sizeof(Half));
  });
}
template <class Whole, class Half>
void join_halves(Warp& w, const Instruction& i) {
  for_lanes(w, [&](int l) {
    const Half low = w.at<Half>(i.operand[1])[l], high = w.at<Half>(i.operand[2])[l];
    w.at<Whole>(i.operand[0])[l] = static_cast<Whole>(static_cast<Whole>(high) << 8 * sizeof(Half) | low);
  });
}

}  // namespace

Operation to_parts(size_t bytes) {
  return bytes == 8 ? Operation{split_halves<uint64_t, uint32_t>, Kind::plain, {4, 4, 8}}
                    : Operation{split_halves<uint32_t, uint16_t>, Kind::plain, {2, 2, 4}};
}
Operation of_parts(size_t bytes) {
  return bytes == 8 ? Operation{join_halves<uint64_t, uint32_t>, Kind::plain, {8, 4, 4}}
                    : Operation{join_halves<uint32_t, uint16_t>, Kind::plain, {4, 2, 2}};
}

Operation arithmetic(const Words& words) {
  const std::string_view name = words.front(), type = words.back(),
                         how = words.size() > 2 ? words[1] : std::string_view();
  if (words.size() == 4 && how == "approx" && words[2] == "ftz" && type == "f32") return special(name);
  if (words.size() > 3) return {};
  if (name == "bfi" && type == "b32") return insert_bits();
  if (name == "bfe" && type == "u32")
    return ternary<uint32_t, uint32_t, uint32_t, uint32_t>(
        [](uint32_t a, uint32_t at, uint32_t length) { return extracted<uint32_t>(a, at, length); });
  if (name == "bfe" && type == "s32")
    return ternary<uint32_t, uint32_t, uint32_t, uint32_t>(
        [](uint32_t a, uint32_t at, uint32_t length) { return extracted<int32_t>(a, at, length); });
  if (name == "prmt" && type == "b32")
    return ternary<uint32_t, uint32_t, uint32_t, uint32_t>(
        [](uint32_t a, uint32_t b, uint32_t c) { return permuted(a, b, c); });
  if (name == "popc" && type == "b32")
    return unary<uint32_t, uint32_t>([](uint32_t a) { return __builtin_popcount(a); });
  if (type == "pred") return predicate(name);
  if (type == "s16") return integer<int16_t>(name, how);
  if (type == "u16" || type == "b16") return integer<uint16_t>(name, how);
  if (type == "s32") return integer<int32_t>(name, how);
  if (type == "u32" || type == "b32") return integer<uint32_t>(name, how);
  if (type == "s64") return integer<int64_t>(name, how);
  if (type == "u64" || type == "b64") return integer<uint64_t>(name, how);
  if (type == "f32") return floating<float>(name, how);
  if (type == "f64") return floating<double>(name, how);
  return {};
}

}  // namespace ptx
