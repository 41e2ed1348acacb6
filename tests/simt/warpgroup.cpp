#include "tests/simt/warpgroup.h"

#include <cmath>
#include <cstring>

#include "tests/simt/machine.h"

namespace simt {

namespace {

uint32_t start_of(uint64_t d) { return static_cast<uint32_t>(d & 0x3fff) << 4; }
uint32_t leading_of(uint64_t d) { return static_cast<uint32_t>(d >> 16 & 0x3fff) << 4; }
uint32_t stride_of(uint64_t d) { return static_cast<uint32_t>(d >> 32 & 0x3fff) << 4; }

// Arrays: see machine.cpp.
constexpr int most_warps = 32, lanes = 32, most_in_flight = 16, most_sums = 128;
struct InFlight {
  AsyncProduct product;
  const uint32_t* own_rows[lanes];
  uint64_t digest;
  int group;
  bool running;
};
// Sums of products in flight: their addresses in each lane, and their future values.
// `count`: sums of a lane; 0: the entry is unused.
struct Sums {
  float *d[lanes], value[lanes][most_sums];
  int count, last_group;
};
struct Warp {
  uint64_t block = 0;  // Number of the block; the state of another block is stale.
  bool begun = false;
  int groups = 0;
  InFlight product[most_in_flight];
  Sums sums[most_in_flight];
};
Warp warps[most_warps];

SIMT_UNSEEN Warp& this_warp() {
  Warp& w = warps[current_thread() / lanes];
  if (w.block == counters.blocks) return w;
  w.block = counters.blocks, w.begun = false, w.groups = 0;
  for (int i = 0; i < most_in_flight; ++i) w.product[i].running = false, w.sums[i].count = 0;
  return w;
}

SIMT_UNSEEN uint16_t element(uint32_t byte) {
  uint16_t bits;
  std::memcpy(&bits, shared_at(byte, 2), 2);
  return bits;
}
SIMT_UNSEEN void read(const InFlight& f, WarpOperands& to) {
  read_operands(f.product, current_thread() / lanes % 4, to, element);
  for (int l = 0; f.product.a_is_in_registers && l < lanes; ++l)
    read_own_rows(f.own_rows[l], l, f.product.is_bf16, to);
}

// Copies between the stacks of lanes, hidden from the sanitizer, which would see a memcpy.
SIMT_UNSEEN void copy_sums(float* to, const float* from, int count) {
  for (int i = 0; i < count; ++i) const_cast<volatile float*>(to)[i] = from[i];
}
SIMT_UNSEEN void clear_sums(float* sums, int count) {
  for (int i = 0; i < count; ++i) const_cast<volatile float*>(sums)[i] = 0;
}
SIMT_UNSEEN void make_unknown(float* sums, int count) {
  for (int i = 0; i < count; ++i) const_cast<volatile float*>(sums)[i] = NAN;
}

struct Ask {
  const AsyncProduct* product;
  float* d;
  const uint32_t* own_rows;
};
WarpOperands operands;

SIMT_UNSEEN void multiply(uint32_t, void* const* in, void* const*) {
  Warp& w = this_warp();
  const AsyncProduct& p = *static_cast<const Ask*>(in[0])->product;
  for (int l = 1; l < lanes; ++l) {
    const AsyncProduct& other = *static_cast<const Ask*>(in[l])->product;
    if (other.a != p.a || other.b != p.b || other.a_is_in_registers != p.a_is_in_registers)
      die("lanes disagree about the matrices of a product");
  }
  if (!w.begun) die("a product in a group that was not begun with a fence");
  if (!copies_are_visible()) die("a product reads copied data that no fence has made visible to it");
  if (const char* wrong = p.a_is_in_registers ? nullptr : wrong_with_matrix(p.a, p.a_transposed)) die(wrong);
  if (const char* wrong = wrong_with_matrix(p.b, p.b_transposed)) die(wrong);
  use_warpgroups();
  int place = 0;
  while (place < most_in_flight && w.product[place].running) ++place;
  if (place == most_in_flight) die("too many products in flight");
  InFlight& flight = w.product[place];
  flight.product = p;
  flight.running = true;
  flight.group = w.groups;
  for (int l = 0; l < lanes; ++l) flight.own_rows[l] = static_cast<const Ask*>(in[l])->own_rows;
  read(flight, operands);
  flight.digest = operands.digest;
  float* const first = static_cast<const Ask*>(in[0])->d;
  const int count = p.columns / 2;
  const auto is_of = [&](int i) { return w.sums[i].count > 0 && w.sums[i].d[0] == first; };
  int found = 0;
  while (found < most_in_flight && !is_of(found)) ++found;
  const bool are_new = found == most_in_flight;
  if (are_new)
    for (found = 0; w.sums[found].count > 0;) ++found;  // There are as many places as products.
  Sums& sums = w.sums[found];
  if (!are_new && sums.count != count) die("products with other sums are in flight");
  float* values[lanes];
  for (int l = 0; l < lanes; ++l) {
    float* const d = static_cast<const Ask*>(in[l])->d;
    if (are_new) copy_sums(sums.value[l], d, count);
    if (!p.added) clear_sums(sums.value[l], count);
    sums.d[l] = d;
    values[l] = sums.value[l];
    make_unknown(d, count);
  }
  add_async_products(operands, p.columns, values);
  sums.count = count;
  sums.last_group = w.groups;
}

SIMT_UNSEEN void finish(uint32_t, void* const* in, void* const*) {
  Warp& w = this_warp();
  const int newest_done = w.groups - *static_cast<const int*>(in[0]) - 1;
  for (InFlight& flight : w.product) {
    if (!flight.running || flight.group > newest_done) continue;
    read(flight, operands);
    if (operands.digest != flight.digest)
      die("shared memory or registers changed under a product that reads them");
    flight.running = false;
  }
  for (Sums& sums : w.sums) {
    if (sums.count == 0 || sums.last_group > newest_done) continue;
    for (int l = 0; l < lanes; ++l) copy_sums(sums.d[l], sums.value[l], sums.count);
    sums.count = 0;
  }
}

// For the sanitizers: every lane reads a part of its warp's operands, when a product begins and when it ends.
void touch([[maybe_unused]] const AsyncProduct& p) {
#if defined(SIMT_ADDRESS) || defined(SIMT_THREAD)
  const int lane = current_thread() % lanes, warp = current_thread() / lanes % 4;
  for (int k = 0; k < 16; ++k) {
    if (lane < 16 && !p.a_is_in_registers)
      (void)*static_cast<const volatile uint16_t*>(
          shared_at(byte_of_element(p.a, p.a_transposed, 16 * warp + lane, k), 2));
    for (int o = lane; o < p.columns; o += lanes)
      (void)*static_cast<const volatile uint16_t*>(shared_at(byte_of_element(p.b, p.b_transposed, o, k), 2));
  }
#endif
}

SIMT_UNSEEN int products_done(int groups_left, AsyncProduct* done) {
  const Warp& w = this_warp();
  int count = 0;
  for (const InFlight& flight : w.product)
    if (flight.running && flight.group < w.groups - groups_left) done[count++] = flight.product;
  return count;
}

SIMT_UNSEEN void begin(uint32_t, void* const*, void* const*) { this_warp().begun = true; }
SIMT_UNSEEN void commit(uint32_t, void* const*, void* const*) {
  Warp& w = this_warp();
  ++w.groups;
  w.begun = false;
}

}  // namespace

const char* wrong_with_matrix(uint64_t d, bool transposed) {
  if (d >> 62 != 1) return "a matrix without swizzling by 128 bytes";
  if ((d >> 49 & 7) != 0) return "a matrix with an offset of its base";
  if (start_of(d) % 1024 >= (transposed ? 16u : 128u)) return "a matrix that does not begin with its atom";
  if (stride_of(d) % 1024 != 0 || (transposed && leading_of(d) % 1024 != 0))
    return "a matrix whose atoms are not aligned";
  return nullptr;
}

// Byte of element (o, k). The canonical layouts without swizzling, for 8 elements in 16 bytes, are ((8, m),
// (8, 2k)):((64, SBO), (1, 8)) along k and ((8, 8, m), (8, k)):((1, 8, LBO), (64, SBO)) transposed. Then bits
// 7 to 9 of the address are XORed into bits 4 to 6.
uint32_t byte_of_element(uint64_t d, bool transposed, int output, int k) {
  const auto o = static_cast<uint32_t>(output), depth = static_cast<uint32_t>(k);
  const uint32_t at = start_of(d) + (transposed ? o % 64 * 2 + o / 64 * leading_of(d) + depth % 8 * 128 +
                                                      depth / 8 * stride_of(d)
                                                : o % 8 * 128 + o / 8 * stride_of(d) + depth * 2);
  return at ^ (at >> 7 & 7) << 4;
}

SIMT_UNSEEN void read_own_rows(const uint32_t* words, int lane, bool is_bf16, WarpOperands& to) {
  for (int r = 0; r < 4; ++r) {
    add_to_digest(to, words[r]);
    for (int e = 0; e < 2; ++e)
      to.a[lane / 4 + 8 * (r % 2)][2 * (lane % 4) + e + 8 * (r / 2)] =
          half_value(static_cast<uint16_t>(words[r] >> (16 * e)), is_bf16);
  }
}

SIMT_UNSEEN void add_async_products(const WarpOperands& factors, int columns, float* const* sums) {
  for (int first = 0; first < columns; first += 8) {
    float tile[16][8];
    const auto sum = [&](int row, int column) -> float& {
      return sums[row % 8 * 4 + column / 2][first / 2 + row / 8 * 2 + column % 2];
    };
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 8; ++column) tile[row][column] = sum(row, column);
    add_products_of_rows(tile, factors.a, &factors.b[0][first], 256);
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 8; ++column) sum(row, column) = tile[row][column];
  }
}

void multiply_async(const AsyncProduct& p, float* d, const uint32_t* own_rows) {
  touch(p);
  Ask ask{&p, d, own_rows};
  collective(0xffffffffu, multiply, &ask, nullptr);
}
void begin_products() { collective(0xffffffffu, begin, nullptr, nullptr); }
void commit_products() { collective(0xffffffffu, commit, nullptr, nullptr); }
void wait_for_products(int groups_left) {
  AsyncProduct done[most_in_flight];
  const int count = products_done(groups_left, done);
  for (int i = 0; i < count; ++i) touch(done[i]);
  collective(0xffffffffu, finish, &groups_left, nullptr);
}

}  // namespace simt
