// Products by four warps together, from shared memory (wgmma of compute capability 9.0). A warp computes its
// rows when it reaches the instruction. The data that it has read must be unchanged when it waits.
#include <cstring>

#include "tests/ptx/machine.h"

namespace ptx {
namespace {

bool is_visible(const Warp& w, const Written& by) {
  if (by.writer == nullptr || by.writer == &w) return w.fence_time >= by.time;
  return by.writer->fence_before_barrier > by.time || w.barriers_at_fence > by.barriers;
}

void read(const Warp& w, const simt::AsyncProduct& p, simt::WarpOperands& to, bool begins) {
  simt::read_operands(p, w.number % 4, to, [&](uint32_t byte) {
    uint16_t bits;
    if (byte + sizeof bits > w.block->shared_bytes) die("a matrix outside of shared memory");
    if (begins && !is_visible(w, w.block->written[byte / 16]))
      die("a product reads written data that no fence has made visible to it");
    std::memcpy(&bits, w.block->shared + byte, sizeof bits);
    return bits;
  });
}

void fence(Warp& w, const Instruction&) {
  w.fence_time = ++w.block->time;
  w.barriers_at_fence = w.block->barriers;
}
void begin(Warp& w, const Instruction&) { w.products_begun = true; }
void commit(Warp& w, const Instruction&) {
  if (w.products.empty()) w.products.emplace_back();
  w.products.emplace_back();
  w.products_begun = false;
}

void wait(Warp& w, const Instruction& i) {
  const size_t left = *w.at<uint32_t>(i.operand[0]);
  simt::WarpOperands operands;
  while (w.products.size() > left + 1) {
    for (const ProductInFlight& p : w.products.front()) {
      read(w, p.product, operands, false);
      if (operands.digest != p.digest) die("shared memory changed under a product that reads it");
    }
    w.products.pop_front();
  }
}

// Operands: {sums}, a, b, whether to add, signs of a and b, whether a and b are transposed. Or, with a in
// registers: {sums}, {four words of a}, b, whether to add, signs of a and b, whether b is transposed.
template <int columns, bool is_bf16>
void multiply(Warp& w, const Instruction& i) {
  constexpr size_t sums = columns / 2;
  const bool a_is_in_registers = i.operand.size() == sums + 9;
  const size_t after_a = sums + (a_is_in_registers ? 4 : 1);
  if ((!a_is_in_registers && i.operand.size() != sums + 7) || i.operand[after_a].bytes != 8 ||
      i.operand[sums].bytes != (a_is_in_registers ? 4 : 8))
    die("operands: " + i.text);
  const auto of_all = [&](size_t operand) {
    const Place& place = i.operand[operand];
    const auto value = [&](int l) {
      return place.bytes == 8   ? w.at<uint64_t>(place)[l]
             : place.bytes == 4 ? w.at<uint32_t>(place)[l]
                                : w.at<uint8_t>(place)[l];
    };
    for (int l = 1; l < lanes; ++l)
      if (value(l) != value(0)) die("lanes disagree about a product: " + i.text);
    return value(0);
  };
  if (of_all(after_a + 2) != 1 || of_all(after_a + 3) != 1) die("a product with another sign: " + i.text);
  if (w.block->written.empty()) die("a product in code that is not for compute capability 9.0 alone");
  if (!w.products_begun) die("a product in a group that was not begun with a fence");
  const bool added = of_all(after_a + 1) != 0, last_transposed = of_all(i.operand.size() - 1) != 0;
  simt::AsyncProduct p{0,       of_all(after_a), columns,          false, last_transposed,
                       is_bf16, added,           a_is_in_registers};
  if (!a_is_in_registers) p.a = of_all(sums), p.a_transposed = of_all(i.operand.size() - 2) != 0;
  for (const char* wrong : {a_is_in_registers ? nullptr : simt::wrong_with_matrix(p.a, p.a_transposed),
                            simt::wrong_with_matrix(p.b, p.b_transposed)})
    if (wrong) die(wrong);
  simt::WarpOperands operands;
  read(w, p, operands, true);
  // The digest covers shared memory only: in PTX, every value has a register of its own.
  const uint64_t digest = operands.digest;
  for (int l = 0; a_is_in_registers && l < lanes; ++l) {
    uint32_t words[4];
    for (size_t r = 0; r < 4; ++r) words[r] = w.at<uint32_t>(i.operand[sums + r])[l];
    simt::read_own_rows(words, l, is_bf16, operands);
  }
  if (w.products.empty()) w.products.emplace_back();
  w.products.back().push_back({p, digest});
  float of_lane[lanes][sums], *values[lanes];
  for (int l = 0; l < lanes; ++l) {
    for (size_t k = 0; k < sums; ++k) of_lane[l][k] = added ? w.at<float>(i.operand[k])[l] : 0;
    values[l] = of_lane[l];
  }
  simt::add_async_products(operands, columns, values);
  for (int l = 0; l < lanes; ++l)
    for (size_t k = 0; k < sums; ++k) w.at<float>(i.operand[k])[l] = of_lane[l][k];
}

}  // namespace

Operation warpgroup(const Words& words) {
  const auto is = [&](std::initializer_list<std::string_view> opcode) { return is_opcode(words, opcode); };
  // Operands of both forms, distinguished by their number.
  const auto product = [&](Run run, size_t columns) {
    return Operation{run, Kind::together, std::vector<uint8_t>(columns / 2, 4), true};
  };
  if (is({"fence", "proxy", "async", "shared::cta"})) return {fence, Kind::together, {}, true};
  if (is({"wgmma", "fence", "sync", "aligned"})) return {begin, Kind::together, {}, true};
  if (is({"wgmma", "commit_group", "sync", "aligned"})) return {commit, Kind::together, {}, true};
  if (is({"wgmma", "wait_group", "sync", "aligned"})) return {wait, Kind::together, {4}, true};
  if (is({"wgmma", "mma_async", "sync", "aligned", "m64n256k16", "f32", "bf16", "bf16"}))
    return product(multiply<256, true>, 256);
  if (is({"wgmma", "mma_async", "sync", "aligned", "m64n256k16", "f32", "f16", "f16"}))
    return product(multiply<256, false>, 256);
  if (is({"wgmma", "mma_async", "sync", "aligned", "m64n192k16", "f32", "bf16", "bf16"}))
    return product(multiply<192, true>, 192);
  if (is({"wgmma", "mma_async", "sync", "aligned", "m64n192k16", "f32", "f16", "f16"}))
    return product(multiply<192, false>, 192);
  if (is({"wgmma", "mma_async", "sync", "aligned", "m64n128k16", "f32", "bf16", "bf16"}))
    return product(multiply<128, true>, 128);
  if (is({"wgmma", "mma_async", "sync", "aligned", "m64n128k16", "f32", "f16", "f16"}))
    return product(multiply<128, false>, 128);
  if (is({"wgmma", "mma_async", "sync", "aligned", "m64n64k16", "f32", "bf16", "bf16"}))
    return product(multiply<64, true>, 64);
  if (is({"wgmma", "mma_async", "sync", "aligned", "m64n64k16", "f32", "f16", "f16"}))
    return product(multiply<64, false>, 64);
  return {};
}

}  // namespace ptx
