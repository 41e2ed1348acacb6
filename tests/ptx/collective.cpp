// Collectives of a warp's lanes, and barriers of a block. Fragments of matrices are placed as in the tables
// of the PTX manual (mma.m16n8k16, ldmatrix, stmatrix). The sum of a step is that of
// tests/simt/tensor_core.h.
#include <algorithm>
#include <cstring>

#include "tests/ptx/machine.h"
#include "tests/simt/fragments.h"

namespace ptx {
namespace {

using Word = uint32_t;

// Source computes the lane to read from. Its arguments are the reading lane, operand b, the clamp and the
// segment. Its result is an invalid number if there is no such lane.
template <class Source>
void shuffle(Warp& w, const Instruction& i) {
  const bool has_predicate = i.operand.size() == 6;
  const size_t first = has_predicate ? 2 : 1;
  const Word *const a = w.at<Word>(i.operand[first]), *const b = w.at<Word>(i.operand[first + 1]),
                    *const c = w.at<Word>(i.operand[first + 2]);
  const Word* const mask = w.at<Word>(i.operand[first + 3]);
  Word sent[lanes], got[lanes];
  std::copy(a, a + lanes, sent);
  for_lanes(w, [&](int l) {
    const auto lane = static_cast<Word>(l), segment = c[l] >> 8 & 31, clamp = c[l] & 31;
    const Word most = (lane & segment) | (clamp & ~segment), least = lane & segment;
    Word from = Source{}(lane, b[l], least, segment);
    const bool inside =
        Source::downwards ? static_cast<int32_t>(from) >= static_cast<int32_t>(most) : from <= most;
    if (!inside) from = lane;
    if (!(mask[l] >> (from & 31) & 1)) die("a shuffle from a lane that takes no part: " + i.text);
    got[l] = sent[from & 31];
    if (has_predicate) w.at<uint8_t>(i.operand[1])[l] = inside;
  });
  for_lanes(w, [&](int l) { w.at<Word>(i.operand[0])[l] = got[l]; });
}
struct Butterfly {
  static constexpr bool downwards = false;
  Word operator()(Word lane, Word b, Word, Word) const { return lane ^ b; }
};
struct Indexed {
  static constexpr bool downwards = false;
  Word operator()(Word, Word b, Word least, Word segment) const { return least | (b & 31 & ~segment); }
};
struct Up {
  static constexpr bool downwards = true;
  Word operator()(Word lane, Word b, Word, Word) const { return lane - (b & 31); }
};
struct Down {
  static constexpr bool downwards = false;
  Word operator()(Word lane, Word b, Word, Word) const { return lane + (b & 31); }
};

void ballot(Warp& w, const Instruction& i) {
  Word votes = 0;
  for_lanes(w, [&](int l) { votes |= static_cast<Word>(w.at<uint8_t>(i.operand[1])[l]) << l; });
  for_lanes(w, [&](int l) { w.at<Word>(i.operand[0])[l] = votes & w.at<Word>(i.operand[2])[l]; });
}

void meet(Warp&, const Instruction&) {}

// Lane l has elements (l / 4, 2·(l mod 4)) and the next one of each of the four matrices, or of the
// transposed matrices. Row r of matrix m is at the address in lane 8·m + r.
// element(register, lane, upper or lower half, the number in shared memory).
template <bool transposed, class Element>
void for_matrices(Warp& w, const Instruction& i, const Place& address, const Element& element) {
  uint64_t rows[lanes];
  for (int l = 0; l < lanes; ++l) {
    rows[l] = w.at<Word>(address)[l] + static_cast<uint64_t>(i.offset);
    if (rows[l] % 16 != 0 || rows[l] + 16 > w.block->shared_bytes)
      die("a row of a matrix at byte " + std::to_string(rows[l]) + " of shared memory: " + i.text);
  }
  if (w.traffic) count_shared(*w.traffic, rows, all_lanes, 16);
  for (int l = 0; l < lanes; ++l)
    for (int m = 0; m < 4; ++m)
      for (int upper = 0; upper < 2; ++upper) {
        const int row = transposed ? 2 * (l % 4) + upper : l / 4,
                  column = transposed ? l / 4 : 2 * (l % 4) + upper;
        element(static_cast<size_t>(m), l, upper, w.block->shared + rows[8 * m + row] + 2 * column);
      }
}
template <bool transposed>
void load_matrices(Warp& w, const Instruction& i) {
  Word words[4][lanes] = {};  // The addresses may be in one of the registers.
  for_matrices<transposed>(w, i, i.operand[4], [&](size_t m, int l, int upper, const char* at) {
    uint16_t half;
    std::memcpy(&half, at, sizeof half);
    words[m][l] |= static_cast<Word>(half) << 16 * upper;
  });
  for (size_t m = 0; m < 4; ++m) std::copy(words[m], words[m] + lanes, w.at<Word>(i.operand[m]));
}
template <bool transposed>
void store_matrices(Warp& w, const Instruction& i) {
  for_matrices<transposed>(w, i, i.operand[0], [&](size_t m, int l, int upper, char* at) {
    const auto half = static_cast<uint16_t>(w.at<Word>(i.operand[m + 1])[l] >> 16 * upper);
    std::memcpy(at, &half, sizeof half);
    note_written(w, at, sizeof half);
  });
}

template <bool is_bf16>
void multiply_matrices(Warp& w, const Instruction& i) {
  float a[16][16], b[16][8], c[16][8];
  const auto half = [&](size_t operand, int l, int upper) {
    return simt::half_value(static_cast<uint16_t>(w.at<Word>(i.operand[operand])[l] >> 16 * upper), is_bf16);
  };
  const auto row_of = [](int l, int r) { return l / 4 + (r >= 2 ? 8 : 0); };
  const auto column_of = [](int l, int r) { return l % 4 * 2 + (r & 1); };
  for (int l = 0; l < lanes; ++l) {
    const int group = l / 4, in_group = l % 4;
    for (int e = 0; e < 8; ++e)
      a[group + (e / 2 % 2 == 1 ? 8 : 0)][in_group * 2 + (e & 1) + (e >= 4 ? 8 : 0)] =
          half(4 + static_cast<size_t>(e / 2), l, e & 1);
    for (int e = 0; e < 4; ++e)
      b[in_group * 2 + (e & 1) + (e >= 2 ? 8 : 0)][group] = half(8 + static_cast<size_t>(e / 2), l, e & 1);
    for (int r = 0; r < 4; ++r)
      c[row_of(l, r)][column_of(l, r)] = w.at<float>(i.operand[10 + static_cast<size_t>(r)])[l];
  }
  simt::add_products_of_rows(c, a, b[0], 8);
  for (int l = 0; l < lanes; ++l)
    for (int r = 0; r < 4; ++r) w.at<float>(i.operand[r])[l] = c[row_of(l, r)][column_of(l, r)];
}

}  // namespace

Operation collective(const Words& words) {
  const auto is = [&](std::initializer_list<std::string_view> opcode) { return is_opcode(words, opcode); };
  const std::vector<uint8_t> fours(14, 4), shuffled = {4, 0, 4, 4, 4, 4};  // The second may be a predicate.
  if (is({"shfl", "sync", "bfly", "b32"})) return {shuffle<Butterfly>, Kind::together, shuffled};
  if (is({"shfl", "sync", "idx", "b32"})) return {shuffle<Indexed>, Kind::together, shuffled};
  if (is({"shfl", "sync", "up", "b32"})) return {shuffle<Up>, Kind::together, shuffled};
  if (is({"shfl", "sync", "down", "b32"})) return {shuffle<Down>, Kind::together, shuffled};
  if (is({"vote", "sync", "ballot", "b32"})) return {ballot, Kind::together, {4, 1, 4}};
  if (is({"bar", "warp", "sync"})) return {meet, Kind::together, fours};
  if (is({"ldmatrix", "sync", "aligned", "m8n8", "x4", "shared", "b16"}))
    return {load_matrices<false>, Kind::together, fours, true};
  if (is({"ldmatrix", "sync", "aligned", "m8n8", "x4", "trans", "shared", "b16"}))
    return {load_matrices<true>, Kind::together, fours, true};
  if (is({"stmatrix", "sync", "aligned", "m8n8", "x4", "shared", "b16"}))
    return {store_matrices<false>, Kind::together, fours, true};
  if (is({"stmatrix", "sync", "aligned", "m8n8", "x4", "trans", "shared", "b16"}))
    return {store_matrices<true>, Kind::together, fours, true};
  if (is({"mma", "sync", "aligned", "m16n8k16", "row", "col", "f32", "bf16", "bf16", "f32"}))
    return {multiply_matrices<true>, Kind::together, fours, true};
  if (is({"mma", "sync", "aligned", "m16n8k16", "row", "col", "f32", "f16", "f16", "f32"}))
    return {multiply_matrices<false>, Kind::together, fours, true};
  if (is({"bar", "sync"})) return {meet, Kind::barrier, fours};
  if (is({"bar", "red", "popc", "u32"})) return {meet, Kind::barrier, {4, 4, 1}};
  if (is({"bar", "red", "or", "pred"})) return {meet, Kind::barrier, {1, 4, 1}};
  return {};
}

}  // namespace ptx
