// The tiles of a matrix product of 16-bit operands on tensor cores, independent of the instruction that
// computes them (tensor_product.h, warpgroup_product_tiles.h). Sums are in fp32.
//
// A tensor core takes a step of 16 of k at a time. The device defines how it adds the 16 products to the sum,
// but it always truncates the result, so the error of a chain of such steps grows with its length. Therefore
// a long sum consists of chains (Summing::totals). Each chain starts from zero, and total = total + chain is
// rounded to nearest, chain after chain. Chains begin at fixed places of k, where slices also begin. Neither
// the tile nor the number of rows changes them, and nothing is split along k. So the bits of a row do not
// depend on other rows, and a product may be cut between two chains and continued from the output (contract
// E3).
//
// If k counts tokens, chains restart in every sample (Products::restart), and a call may begin in a sample at
// a multiple of chain_terms (Products::first). The last slice of a part of k (a sample, or a product) is
// padded with zeros.
//
// A slice holds one operand's data for some steps. Slices are copied to shared memory without passing through
// registers, several at once. Lines of a slice run along k if the operand is contiguous along k, else along
// the tile's edge. A line is cut into chunks of 16 bytes. The order of the chunks depends on the line, so
// that lines that are read at once lie in different banks.
#pragma once
#include "kernels/cuda/developer.h"
#include "kernels/cuda/product/round_gradient.h"
#include "kernels/cuda/product/tile_sums.h"

namespace stw::kernels::cuda {

// A if `first` is true, else B. (Kernels use no templates of the standard library.)
template <bool first, class A, class B>
struct ChosenType {
  using Type = A;
};
template <class A, class B>
struct ChosenType<false, A, B> {
  using Type = B;
};
template <bool first, class A, class B>
using Chosen = typename ChosenType<first, A, B>::Type;

// ---- chains
// one_chain  from the start value of the output, over all of k and all products of a chained product
// totals     the total starts from the start value; chains are added to it
// rounded    totals, which are rounded to bf16 at the end of every sample
enum class Summing : uint8_t { one_chain, totals, rounded };

// Terms of a chain for 16-bit outputs. 512 truncated additions lose at most 512 units of the last place,
// 2^-14 of the size of the sum (tests/simt: 3.7e-5 of it if all terms have one sign, 3e-7 if they do not);
// the output is rounded to 2^-9 (bf16) or 2^-12 (fp16). fp32 outputs have chains of chain_terms. Totals take
// as many registers as sums, and a tile of 128 × 256, the fastest one, has none for them.
inline constexpr int64_t narrow_chain_terms = 8192;

// Whether k counts tokens. It does so only in weight gradients, whose operands are both contiguous along the
// output. Weight gradients always have totals.
template <Contiguous a_along, Contiguous b_along>
inline constexpr bool counts_tokens = (a_along == Contiguous::output) && (b_along == Contiguous::output);

inline bool needs_totals(const Products& all) {
  if (all.c == DType::f32) return true;
  int64_t terms = 0;
  for (int i = 0; i < all.count; ++i)
    terms = all.chained ? terms + all.product[i].k : terms < all.product[i].k ? all.product[i].k : terms;
  return terms > narrow_chain_terms;
}
// Calls body(tag, products), where tag.value is the Summing of a product; `products` has the length of its
// chains.
template <Summing summing>
struct SummingTag {
  static constexpr Summing value = summing;
};
template <Contiguous a_along, Contiguous b_along, bool rounded, class Body>
void for_summing(Products all, const Body& body) {
  static_assert(!rounded || counts_tokens<a_along, b_along>);
  all.chain = rounded || all.c == DType::f32 ? chain_terms : narrow_chain_terms;
  if constexpr (counts_tokens<a_along, b_along>)
    body(SummingTag < rounded ? Summing::rounded : Summing::totals > {}, all);
  else if (needs_totals(all)) body(SummingTag<Summing::totals>{}, all);
  else body(SummingTag<Summing::one_chain>{}, all);
}

// ---- slices in shared memory
// The largest power of two that does not exceed x.
static constexpr int power_of_two_in(int x) { return x < 2 ? x : 2 * power_of_two_in(x / 2); }
// How a thread copies its share of an operand's slices. T::place_of<edge, along>(line, c) is the place of
// chunk c of a line in shared memory. A thread copies the same chunk of all of its lines, which are a
// multiple of eight apart. After the edge of the output, a thread copies the last line or chunk that exists.
// The sums of these are not stored, so no thread has to test for the edge.
template <class T, int edge, Contiguous along>
struct SliceCopy {
  static constexpr int line_chunks = (along == Contiguous::depth ? T::slice_depth : edge) / chunk;
  // Lines that all threads copy at once, rounded down to a power of two; the remaining threads copy nothing.
  static constexpr int lines = power_of_two_in(T::threads / line_chunks), threads = lines * line_chunks;
  static constexpr int copies = edge * T::slice_depth / chunk / threads;
  static_assert(lines % 8 == 0 && copies * threads * chunk == edge * T::slice_depth);
  static_assert(threads % 32 == 0);  // A warp copies as a whole, or not at all.
  // Elements from one copy to the next.
  static constexpr int further = T::template place_of<edge, along>(lines, 0);
  const char* from;  // This thread's first chunk at k = 0.
  int line_bytes;    // From one line to the next.
  int last_line;     // Along depth: the operand's last line, counted from this thread's first one.
  static __device__ int first_line() { return static_cast<int>(threadIdx.x) / line_chunks; }
  static __device__ int column() { return static_cast<int>(threadIdx.x) % line_chunks * chunk; }

  __device__ void begin(const void* operand, int64_t stride, int output, int64_t outputs) {
    const int last = static_cast<int>(outputs) - 1;
    line_bytes = static_cast<int>(stride * static_cast<int64_t>(sizeof(uint16_t)));
    int64_t first = 0;
    if constexpr (along == Contiguous::depth) {
      const int line = min(output + first_line(), last);
      first = line * stride + column();
      last_line = last - line;
    } else {
      first = first_line() * stride + min(output + column(), last / chunk * chunk);
    }
    from = static_cast<const char*>(operand) + first * static_cast<int64_t>(sizeof(uint16_t));
  }
  // Copies from k on; zeros from `end` on.
  __device__ void copy(uint16_t* slice, int k, int end) const {
    if constexpr (threads < T::threads)
      if (static_cast<int>(threadIdx.x) >= threads) return;
    uint16_t* const to = slice + T::template place_of<edge, along>(first_line(), column() / chunk);
    if constexpr (along == Contiguous::depth) {
      const bool is_there = k + column() < end;
      const char* const line = from + k * static_cast<int64_t>(sizeof(uint16_t));
      STW_UNROLL
      for (int i = 0; i < copies; ++i)
        copy_async16_or_zeros(to + i * further,
                              line + static_cast<int64_t>(opaque(min(i * lines, last_line))) * line_bytes,
                              is_there);
    } else {
      STW_UNROLL
      for (int i = 0; i < copies; ++i)
        copy_async16_or_zeros(to + i * further,
                              from + static_cast<int64_t>(opaque(k + i * lines)) * line_bytes,
                              k + i * lines + first_line() < end);
    }
  }
};

// An epilogue processes the sums of a tile. StoredSums stores them, with the bias. Other epilogues derive
// from EpilogueSums or TriangleSums, hold their data, and provide two functions. is_idle(epilogue): there is
// nothing to do. process_sums(epilogue, product, row, column, sums, n, mirrored): processes two adjacent
// sums, of which the second is outside the output if n = 1. `triangle`: there is one product, with m = n, and
// tiles above the diagonal are not computed. `mirrored`: this tile lies below the diagonal, and its sums also
// stand for the mirrored ones above.
struct StoredSums {
  static constexpr bool stored = true, triangle = false;
};
struct EpilogueSums {
  static constexpr bool stored = false, triangle = false;
};
struct TriangleSums {
  static constexpr bool stored = false, triangle = true;
};

// Tiles on and below the diagonal, row after row.
inline int64_t tiles_of_triangle(int64_t rows) { return rows * (rows + 1) / 2; }
STW_DEVICE Tile tile_of_triangle(int64_t edge) {
  const auto index = static_cast<int64_t>(blockIdx.x);
  int64_t row = 0;
  while ((row + 1) * (row + 2) / 2 <= index) ++row;
  return {0, static_cast<int>(row * edge), static_cast<int>((index - row * (row + 1) / 2) * edge)};
}
template <class Epilogue, class T>
STW_DEVICE Tile tile_of(const Products& all) {
  if constexpr (Epilogue::triangle) return tile_of_triangle(T::edge_m);
  else return tile_of_block(all, T::edge_m, T::edge_n);
}

// The parts of k: no slice lies in two of them. Parts are products, or, if the depth counts tokens, samples.
// `at` and `end` count from the operand's first line.
template <bool of_tokens, bool rounded>
struct ProductParts {
  struct Part {
    int number, at, end;
  };
  int restart, before, depth, end;  // `end`: the number of the part after the last one.
  const Products& all;

  __device__ ProductParts(const Products& products, const Product& out, int last) : all(products) {
    restart = of_tokens ? static_cast<int>(all.restart) : 0;
    before = rounded ? 0 : static_cast<int>(all.first), depth = static_cast<int>(out.k);
    end = !of_tokens ? last + 1 : rounded || restart > 0 ? (before + depth + restart - 1) / restart : 1;
  }
  // Goes to the first part from `number` on that is not empty.
  __device__ void go_to(Part& p, int number) const {
    p = {number, 0, 0};
    for (; p.number < end; ++p.number) {
      if (!of_tokens) p.at = 0, p.end = static_cast<int>(all.product[p.number].k);
      else if (rounded || restart > 0)
        p.at = max(p.number * restart - before, 0), p.end = min((p.number + 1) * restart - before, depth);
      else p.at = 0, p.end = depth;
      if (p.at < p.end) return;
    }
  }
};

// Copies the slices of a tile in order to shared memory, those of a and b alternating.
template <class T, Contiguous a_along, Contiguous b_along, bool rounded>
struct SliceCopies {
  static constexpr bool of_tokens = counts_tokens<a_along, b_along>;
  using Parts = ProductParts<of_tokens, rounded>;
  const Parts& parts;
  const Tile& tile;
  uint16_t* const slices;
  typename Parts::Part copying;
  SliceCopy<T, T::edge_m, a_along> copy_a;
  SliceCopy<T, T::edge_n, b_along> copy_b;

  __device__ SliceCopies(const Parts& all_parts, const Tile& of_tile, uint16_t* memory)
      : parts(all_parts), tile(of_tile), slices(memory) {}
  __device__ void begin(const Product& out, const typename Parts::Part& first) {
    copying = first;
    if (copying.number < parts.end) begin_product(of_tokens ? out : parts.all.product[copying.number]);
  }
  __device__ void begin_product(const Product& p) {
    copy_a.begin(p.a, p.a_stride, tile.row, p.m);
    copy_b.begin(p.b, p.b_stride, tile.column, p.n);
  }
  __device__ void copy_next(int stage) {
    if (copying.number < parts.end) {
      uint16_t* const slice = slices + stage * (T::slice_a + T::slice_b);
      copy_a.copy(slice, copying.at, copying.end);
      copy_b.copy(slice + T::slice_a, copying.at, copying.end);
      copying.at += T::slice_depth;
      if (copying.at >= copying.end) {
        parts.go_to(copying, copying.number + 1);
        if constexpr (!of_tokens)
          if (copying.number < parts.end) begin_product(parts.all.product[copying.number]);
      }
    }
    commit_copies();  // Even an empty group, because groups are counted.
  }
};

// The number of slices that this many terms take.
template <class T>
STW_DEVICE int slices_in(int terms) {
  return (terms + T::slice_depth - 1) / T::slice_depth;
}

template <class T>
using SumsOfThread = float[T::fragments_m][T::fragments_n][4];

// Rounds the totals at the end of a sample. Four adjacent fragments take four blocks of random numbers, one
// from each thread of a quad. For operands of whole chunks (fits_tensor_cores), a block begins with a
// fragment.
template <class T>
STW_DEVICE void round_totals(SumsOfThread<T>& total, const Products& all, const Product& out,
                             const Tile& tile, int thread, int sample) {
  static_assert(T::fragments_n % 4 == 0);
  const GradientRounding rounding = gradient_rounding_of(*all.state, out.stream, sample);
  STW_UNROLL
  for (int i = 0; i < T::fragments_m; ++i) STW_UNROLL
  for (int half = 0; half < 2; ++half) STW_UNROLL
  for (int four = 0; four < T::fragments_n; four += 4) {
    // Addresses are computed again for each block, because totals leave few registers.
    const int t = opaque(thread);
    const int64_t row = tile.row + row_of<T>(t) + 16 * i + 8 * half,
                  column = tile.column + t / 32 % T::warps_n * T::warp_n + 8 * (four + t % quad);
    const Philox4 random = transposed_in_quad(rounding_block(rounding, row * out.c_stride + column));
    STW_UNROLL
    for (int j = 0; j < 4; ++j) {
      float* const x = &total[i][four + j][2 * half];
      x[0] = rounded_gradient(x[0], random.w[j] & 0xffffu);
      x[1] = rounded_gradient(x[1], random.w[j] >> 16);
    }
  }
}

// Stores the sums of a tile, or hands them to the epilogue.
template <class T, DType dtype, class Multiply, class Epilogue>
STW_DEVICE void end_tile(SumsOfThread<T>& result, const Products& all, const Product& out, const Tile& tile,
                         const Epilogue& epilogue, uint16_t* slices, int thread) {
  if constexpr (Epilogue::stored) {
    store_sums<T, dtype, Multiply>(result, all, out, tile, slices, opaque(thread));
  } else {
    static_assert(!Multiply::asynchronous);
    for_pairs<T>(out, tile, opaque(thread),
                 [&](int i, int j, int half, int64_t row, int64_t column, int64_t n) {
                   if (n > 0)
                     process_sums(epilogue, out, row, column,
                                  Float2{{result[i][j][2 * half], result[i][j][2 * half + 1]}}, n,
                                  tile.row != tile.column);
                 });
  }
}

// Multiplies the slices of a tile and adds up its chains.
//
// T::Multiply<dtype, a_along, b_along> multiplies slices. It is constructed from the thread's number. It is
// called with the sums, the slices of a and b, and a function that starts the copy of the next slice, which
// it calls once.
//
// An `asynchronous` Multiply does not get that function. Its slice<added>() continues to run while later
// slices are copied. If not `added`, it overwrites the sums. finish<n>() waits for all slices except the last
// n. fence_copies() is called when this thread's copies have arrived. add() is an addition that the compiler
// neither moves nor removes. Sums are initialised by it, and after finish() they are read only through it.
//
// An interval is the time between two barriers. In each, a thread begins to multiply one slice. If T is
// `staggered`, a block has two warpgroups, and the second one multiplies each slice one interval after the
// first one. At the beginning of a chain, a warpgroup waits for its products and adds their sums to the
// totals; meanwhile the products of the other warpgroup run. The second warpgroup begins with an interval
// without products, and the first one ends with one, so that both pass the same barriers.
template <class T, DType dtype, Contiguous a_along, Contiguous b_along, Summing summing>
struct TileChains {
  using Multiply = typename T::template Multiply<dtype, a_along, b_along>;
  static constexpr bool has_totals = summing != Summing::one_chain, rounded = summing == Summing::rounded;
  using Copies = SliceCopies<T, a_along, b_along, rounded>;
  static constexpr int ahead = T::ahead;
  static_assert(!T::staggered || (Multiply::asynchronous && has_totals));
  SumsOfThread<T>&sum, &total;  // Without totals, `sum` is the result.
  const Products& all;
  Copies& copies;
  const Multiply multiply;
  int stage = 0;         // Of the newest slice that is multiplied.
  const bool is_behind;  // This thread's warpgroup multiplies the slice before.

  __device__ TileChains(SumsOfThread<T>& sums, SumsOfThread<T>& totals, const Products& products,
                        Copies& of_slices, int thread)
      : sum(sums),
        total(totals),
        all(products),
        copies(of_slices),
        multiply(thread),
        // By a shuffle, so that the compiler knows that it is the same for a whole warp.
        is_behind(T::staggered && __shfl_sync(all_lanes, thread / (T::threads / 2), 0) != 0) {
    STW_UNROLL
    for (int first = 0; first < ahead; ++first) copies.copy_next(first);
  }
  // Adds the chain that has ended to the total. If the chain is -0, the total does not change.
  __device__ void add_chain() {
    if constexpr (has_totals)
      for_sums<T>([&](int i, int j, int k) { total[i][j][k] = Multiply::add(total[i][j][k], sum[i][j][k]); });
  }
  template <class Compute>
  __device__ void next_slice(const Compute& compute) {  // compute(a, b, copy) calls copy() once.
    wait_copies<ahead - 1>();
    if constexpr (Multiply::asynchronous)
      if (all.fence) Multiply::fence_copies();
    // The slice of this interval has arrived for all threads. All have finished with the slice that the next
    // copy overwrites: the one before, or (asynchronous) the second one before, or (staggered) the third one.
    __syncthreads();
    const int multiplied = is_behind ? (stage + T::stages - 1) % T::stages : stage;
    const uint16_t *a = copies.slices + multiplied * (T::slice_a + T::slice_b), *b = a + T::slice_a;
    compute(a, b, [&] { copies.copy_next((stage + ahead) % T::stages); });
    stage = (stage + 1) % T::stages;
  }
  // An interval in which this warpgroup multiplies nothing.
  __device__ void pass_slice() {
    next_slice([](const uint16_t*, const uint16_t*, const auto& copy) { copy(); });
  }
  __device__ void add_slice() {
    next_slice([&](const uint16_t* a, const uint16_t* b, const auto& copy) {
      if constexpr (Multiply::asynchronous) {
        multiply.template slice<true>(sum, a, b);
        copy();
      } else {
        multiply(sum, a, b, copy);
      }
    });
    if constexpr (Multiply::asynchronous) Multiply::template finish<1>();
  }
  // Adds all products, from the tile's to the last, in one chain.
  __device__ void add_products(const Tile& tile, int last) {
    int slices_left = 0;
    for (int i = tile.product; i <= last; ++i)
      slices_left += slices_in<T>(static_cast<int>(all.product[i].k));
    STW_ROLLED
    for (; slices_left > 0; --slices_left) add_slice();
    if constexpr (Multiply::asynchronous) Multiply::template finish<0>();
  }
  // Adds the parts in chains, whose sums are added to the totals.
  __device__ void add_parts(typename Copies::Parts::Part in_use, const Product& out, const Tile& tile,
                            int thread) {
    if constexpr (T::staggered)
      if (is_behind) pass_slice();
    while (in_use.number < copies.parts.end) {  // One chain.
      int slices_left = slices_in<T>(min(in_use.end - in_use.at, static_cast<int>(all.chain)));
      in_use.at += slices_left * T::slice_depth;
      if constexpr (Multiply::asynchronous) {
        // The chain before this one is added while the first slice of this one is awaited, and (staggered)
        // while the other warpgroup multiplies.
        next_slice([&](const uint16_t* a, const uint16_t* b, const auto& copy) {
          Multiply::template finish<0>();
          add_chain();
          multiply.template slice<false>(sum, a, b);
          copy();
        });
        --slices_left;
      }
      STW_ROLLED
      for (; slices_left > 0; --slices_left) add_slice();
      const bool part_ends = in_use.at >= in_use.end;
      if (!Multiply::asynchronous || (rounded && part_ends)) {
        if constexpr (Multiply::asynchronous) Multiply::template finish<0>();
        add_chain();
        for_sums<T>([&](int i, int j, int k) { sum[i][j][k] = Multiply::add(-0.0f, -0.0f); });
        if constexpr (rounded)
          if (part_ends) round_totals<T>(total, all, out, tile, thread, in_use.number);
      }
      if (part_ends) copies.parts.go_to(in_use, in_use.number + 1);
    }
    if constexpr (T::staggered)
      if (!is_behind) pass_slice();
    if constexpr (Multiply::asynchronous) {
      Multiply::template finish<0>();
      add_chain();
    }
  }
};

template <class T, DType dtype, Contiguous a_along, Contiguous b_along, Summing summing, class Epilogue>
static __global__ void __launch_bounds__(T::threads, T::together)
    tile_product_kernel(Products all, Epilogue epilogue) {
  using Chains = TileChains<T, dtype, a_along, b_along, summing>;
  using Multiply = typename Chains::Multiply;
  constexpr bool of_tokens = counts_tokens<a_along, b_along>, has_totals = Chains::has_totals;
  static_assert(of_tokens ? has_totals : !Chains::rounded);
  static_assert(chain_terms % T::slice_depth == 0 && narrow_chain_terms % T::slice_depth == 0);
  STW_DYNAMIC_SHARED(uint16_t, memory);
  uint16_t* const slices = T::first_slice(memory);
  if constexpr (!Epilogue::stored)
    if (is_idle(epilogue)) return;
  const Tile tile = tile_of<Epilogue, T>(all);
  const Product& out = all.product[tile.product];
  const int thread = static_cast<int>(threadIdx.x), last = all.chained ? all.count - 1 : tile.product;
  SumsOfThread<T> sum, total;
  {
    SumsOfThread<T> start;
    load_sums<T, dtype>(start, all, out, tile, reinterpret_cast<float*>(slices), thread);
    for_sums<T>([&](int i, int j, int k) {
      if constexpr (has_totals) total[i][j][k] = start[i][j][k], sum[i][j][k] = Multiply::add(-0.0f, -0.0f);
      else sum[i][j][k] = Multiply::add(start[i][j][k], -0.0f);
    });
  }
  const typename Chains::Copies::Parts parts(all, out, last);
  typename Chains::Copies::Parts::Part first;
  parts.go_to(first, of_tokens ? 0 : tile.product);
  typename Chains::Copies copies(parts, tile, slices);
  copies.begin(out, first);
  Chains chains(sum, total, all, copies, thread);
  if constexpr (has_totals) chains.add_parts(first, out, tile, thread);
  else chains.add_products(tile, last);
  end_tile<T, dtype, Multiply>(has_totals ? total : sum, all, out, tile, epilogue, slices, thread);
}

// Whether an operand can be copied in chunks of 16 bytes: all chunks are aligned, and each lies within the
// operand, in the zeros after it (`padded`), or outside. The number of rows does not matter.
inline bool whole_chunks(const void* operand, int64_t stride, int64_t contiguous, bool padded) {
  return reinterpret_cast<uintptr_t>(operand) % 16 == 0 && stride % chunk == 0 &&
         (padded || contiguous % chunk == 0);
}
template <Contiguous a_along, Contiguous b_along>
bool fits_tensor_cores(const Products& all) {
  if (all.a != all.b || all.a == DType::f32) return false;
  for (int i = 0; i < all.count; ++i) {
    const Product& p = all.product[i];
    if (!whole_chunks(p.a, p.a_stride, a_along == Contiguous::depth ? p.k : p.m, all.padded_a)) return false;
    if (!whole_chunks(p.b, p.b_stride, b_along == Contiguous::depth ? p.k : p.n, false)) return false;
  }
  return true;
}

template <class T, DType dtype, Contiguous a_along, Contiguous b_along, Summing summing, class Epilogue>
void launch_tiles(const Launch& l, int64_t tiles, Products all, const Epilogue& epilogue) {
  assert(all.restart == 0 || (counts_tokens<a_along, b_along>));
  assert(all.first % chain_terms == 0 && all.chain % T::slice_depth == 0);
  all.fence = developer_switches().fence;
  if (const int64_t chain = developer_switches().chain; chain > 0 && all.chain > 0) all.chain = chain;
  if (tiles > 0)
    launch(l, tile_product_kernel<T, dtype, a_along, b_along, summing, Epilogue>,
           static_cast<unsigned>(tiles), T::threads, T::shared_bytes, all, epilogue);
}

// Calls in_tile(T{}) with the tile T whose number is `best`, or with the tile that a developer forces. A
// product that the forced tile does not support is refused. Otherwise a test would measure another tile than
// the forced one.
template <class... T>
struct TilesToChoose {
  template <class InTile>
  static void choose(int best, const InTile& in_tile) {
    DeveloperSwitches& switches = developer_switches();
    const int number = switches.tile >= 0 ? switches.tile : best;
    switches.chosen = number;
    if (((T::number == number && (in_tile(T{}), true)) || ...)) return;
    ++switches.refused;
  }
};

}  // namespace stw::kernels::cuda
