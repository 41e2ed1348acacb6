// The tiles of a matrix product of 16-bit operands on the tensor cores, apart from the instruction that computes them
// (tensor_product.h, warpgroup_product.h). Sums are in fp32.
//
// Every element of the output goes through k in steps of 16, one step after the other. How the 16 products of a step are added to
// the sum is the device's own affair; the order of the steps is not. Neither the tile nor the number of rows changes that order,
// nothing is split along k, and the sum starts from what the output holds. So a row's bits do not depend on other rows, and a
// product may be cut between any two steps and go on (contract E3).
//
// Where k counts tokens, steps restart in every sample (`restart`): a sample's last step is filled up with zeros, so that a cut
// between samples is a cut between steps. So is a cut inside of a sample that lies at a multiple of a step; `first` then says how
// many of the sample's tokens lie before. Steps that are wholly past the end are not done: adding +0 turns -0 into +0.
// `rounded`: slices restart in every sample, too, and the sums are rounded behind each sample. Warpgroups then do the steps that fill up
// a sample's last slice: always the same ones, so that a -0 which they turn into +0 is one however a batch is cut.
//
// A slice is what some steps take of one operand. Slices travel to shared memory without passing through registers, several at
// once. Lines of a slice run along k where the operand is contiguous along k, else along the tile's edge. A line is cut into
// chunks of 16 bytes, whose order depends on the line, so that lines that are read at once lie in different banks.
#pragma once
#include "kernels/cuda/developer.h"
#include "kernels/cuda/round_gradient.h"
#include "kernels/cuda/tile_sums.h"

namespace stw::kernels::cuda {

// ---- steps
struct Step { int first, end; };   // from `first` to `end` along k; the step is empty where end <= first

STW_DEVICE int steps_in(int extent) { return (extent + step_depth - 1) / step_depth; }
STW_DEVICE int steps_of(int k, int restart, int first) {
  if (restart <= 0) return steps_in(k);
  const int end = first + k, whole_samples = end / restart;
  return whole_samples * steps_in(restart) + steps_in(end - whole_samples * restart) - first / step_depth;
}
// Whether steps may restart, because k counts tokens: only in gradients of weights, whose operands both lie along the output. All
// other products know when they are compiled that no step restarts.
template <Contiguous a_along, Contiguous b_along>
inline constexpr bool may_restart = a_along == Contiguous::output && b_along == Contiguous::output;
// Gives the steps of a product one after the other; steps behind the product's end are empty.
struct StepCursor {
  int at, sample_end, end, restart;   // restart: 0 where steps do not restart, or where they are to stay inside of a sample
  __device__ Step next() {
    const Step step = {at, sample_end < end ? sample_end : end};
    at += step_depth;
    if (restart > 0 && at >= sample_end) at = sample_end, sample_end += restart;
    return step;
  }
};

// ---- slices in shared memory
static constexpr int power_of_two_in(int x) { return x < 2 ? x : 2 * power_of_two_in(x / 2); }   // the largest one
// How a thread copies its share of one operand's slices. T::place_of<edge, along>(line, c) says where chunk c of a line begins in
// shared memory. A thread copies one chunk of a line, the same chunk of every line that is its own; these lines lie a multiple of
// eight apart. Beyond the output's edge a thread copies the last line, or chunk, that there is: what comes of it is stored
// nowhere, and so no thread has to ask where the edge is.
template <class T, int edge, Contiguous along>
struct SliceCopy {
  static constexpr int line_chunks = (along == Contiguous::depth ? T::slice_depth : edge) / chunk;
  // Lines that all threads copy at once, rounded down to a power of two: threads that are left over copy nothing.
  static constexpr int lines = power_of_two_in(T::threads / line_chunks), threads = lines * line_chunks;
  static constexpr int copies = edge * T::slice_depth / chunk / threads;
  static_assert(lines % 8 == 0 && step_depth % (along == Contiguous::depth ? 8 : lines) == 0 && copies * threads * chunk == edge * T::slice_depth);
  static_assert(threads % 32 == 0);   // whole warps copy, or nothing
  static constexpr int further = T::template place_of<edge, along>(lines, 0);   // elements from one copy to the next
  const char* from;   // this thread's first chunk at k = 0
  int line_bytes;     // from one line to the next
  int last_line;      // along depth: the operand's last line, counted from this thread's first
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
  __device__ void copy(uint16_t* slice, const Step (&steps)[T::slice_steps]) const {
    if constexpr (threads < T::threads)
      if (static_cast<int>(threadIdx.x) >= threads) return;
    uint16_t* const to = slice + T::template place_of<edge, along>(first_line(), column() / chunk);
    if constexpr (along == Contiguous::depth) {
      const int k = steps[0].first;   // the steps of a slice follow each other from here on: along depth none restarts
      const bool is_there = k + column() < steps[0].end;
      const char* const line = from + k * static_cast<int64_t>(sizeof(uint16_t));
      STW_UNROLL
      for (int i = 0; i < copies; ++i) copy_async16_or_zeros(to + i * further, line + static_cast<int64_t>(forgotten(min(i * lines, last_line))) * line_bytes, is_there);
    } else {
      STW_UNROLL
      for (int i = 0; i < copies; ++i) {
        const Step& step = steps[i * lines / step_depth];
        const int k = step.first + i * lines % step_depth;
        copy_async16_or_zeros(to + i * further, from + static_cast<int64_t>(k) * line_bytes, k + first_line() < step.end);
      }
    }
  }
};

// What becomes of a tile's sums is its ending. StoredSums stores them, with the bias. Other endings derive from EndedSums or
// TriangleSums, hold what they need, and bring two functions: is_idle(ending), whether there is nothing to do, and
// end_sums(ending, product, row, column, sums, n, mirrored) for two neighbouring sums, of which n are inside of the output.
// `triangle`: there is one product, with m = n, whose tiles above the diagonal are left out; `mirrored` tells a tile below the
// diagonal that its sums stand for those above, too.
struct StoredSums { static constexpr bool stored = true, triangle = false; };
struct EndedSums { static constexpr bool stored = false, triangle = false; };
struct TriangleSums { static constexpr bool stored = false, triangle = true; };

// Tiles on and below the diagonal, row after row.
inline int64_t tiles_of_triangle(int64_t rows) { return rows * (rows + 1) / 2; }
STW_DEVICE Tile tile_of_triangle(int64_t edge) {
  const auto index = static_cast<int64_t>(blockIdx.x);
  int64_t row = 0;
  while ((row + 1) * (row + 2) / 2 <= index) ++row;
  return {0, static_cast<int>(row * edge), static_cast<int>((index - row * (row + 1) / 2) * edge)};
}
template <class Ending, class T>
STW_DEVICE Tile tile_of(const Products& all) {
  if constexpr (Ending::triangle) return tile_of_triangle(T::edge_m);
  else return tile_of_block(all, T::edge_m, T::edge_n);
}

// T::Multiply<dtype, a_along, b_along> multiplies slices. It is made of the thread's number, and called with the sums, the slices
// of a and b, how many steps are left, and a function that asks for the next slice, which Multiply calls once.
// An `asynchronous` Multiply gets no such function. Its whole() goes on while the next slice is asked for, in the place of the
// last slice but one. finish<n>() waits for all products but the last n; show_copies() is called when this thread's copies have
// arrived. Sums start from settled() numbers, and are settled(), with what is added to them, before anything becomes of them.
template <class T, DType dtype, Contiguous a_along, Contiguous b_along, bool rounded, class Ending>
static __global__ void __launch_bounds__(T::threads, T::together) tile_product_kernel(Products all, Ending ending) {
  using Multiply = typename T::template Multiply<dtype, a_along, b_along>;
  static_assert(!rounded || may_restart<a_along, b_along>);
  STW_DYNAMIC_SHARED(uint16_t, memory);
  uint16_t* const slices = T::first_slice(memory);   // of a and b in turn
  if constexpr (!Ending::stored)
    if (is_idle(ending)) return;
  const Tile tile = tile_of<Ending, T>(all);
  const Product& out = all.product[tile.product];
  const int thread = static_cast<int>(threadIdx.x), last = all.chained ? all.count - 1 : tile.product;
  float sum[T::fragments_m][T::fragments_n][4];
  {
    float start[T::fragments_m][T::fragments_n][4];
    load_sums<T, dtype>(start, all, out, tile, reinterpret_cast<float*>(slices), thread);
    for_sums<T>([&](int i, int j, int k) { sum[i][j][k] = Multiply::settled(start[i][j][k], -0.0f); });
  }

  const int restart = may_restart<a_along, b_along> ? static_cast<int>(all.restart) : 0, before = static_cast<int>(all.first);
  const auto steps_of_product = [&](int i) { return steps_of(static_cast<int>(all.product[i].k), restart, before); };
  int slices_left = 0;   // to be multiplied
  if constexpr (rounded) slices_left = static_cast<int>(ceil_div(out.k, all.restart)) * static_cast<int>(ceil_div(steps_in(restart), T::slice_steps));
  else
    for (int i = tile.product; i <= last; ++i) slices_left += static_cast<int>(ceil_div(steps_of_product(i), T::slice_steps));
  int slices_to_copy = slices_left;
  // A part is one product (rounded: one sample) with its steps. Slices of `in_use` are multiplied, slices of `copying` asked for.
  struct Part { int number, step, steps; };
  Part in_use = {rounded ? 0 : tile.product, 0, rounded ? steps_in(restart) : steps_of_product(tile.product)};
  const auto advance = [&](Part& p) {   // true: into the next part
    p.step += T::slice_steps;
    if (p.step < p.steps || (!rounded && p.number == last)) return false;
    p = {p.number + 1, 0, rounded ? p.steps : steps_of_product(p.number + 1)};
    return true;
  };
  Part copying = in_use;
  SliceCopy<T, T::edge_m, a_along> copy_a;
  SliceCopy<T, T::edge_n, b_along> copy_b;
  StepCursor cursor;
  const auto begin_part = [&] {
    if constexpr (rounded) {
      cursor = {copying.number * restart, (copying.number + 1) * restart, static_cast<int>(out.k), 0};
      if (copying.number > 0) return;
    }
    const Product& p = all.product[rounded ? tile.product : copying.number];
    if constexpr (!rounded) cursor = {0, restart > 0 ? restart - before : static_cast<int>(p.k), static_cast<int>(p.k), restart};
    copy_a.begin(p.a, p.a_stride, tile.row, p.m);
    copy_b.begin(p.b, p.b_stride, tile.column, p.n);
  };
  begin_part();
  const auto copy_next = [&](int stage) {
    if (slices_to_copy > 0) {
      Step steps[T::slice_steps];
      STW_UNROLL
      for (int i = 0; i < T::slice_steps; ++i) steps[i] = cursor.next();
      uint16_t* const slice = slices + stage * (T::slice_a + T::slice_b);
      copy_a.copy(slice, steps);
      copy_b.copy(slice + T::slice_a, steps);
      if (advance(copying)) begin_part();
      --slices_to_copy;
    }
    commit_copies();   // an empty group too: groups are counted
  };

  // Four fragments side by side are four blocks of random numbers, one for each thread of a quad. Operands of which tensor cores
  // take whole chunks have blocks that begin with a fragment (fits_tensor_cores).
  const auto round_sample = [&](int sample) {
    static_assert(!rounded || T::fragments_n % 4 == 0);
    const GradientRounding rounding = gradient_rounding_of(*all.state, out.stream, sample);
    const int t = forgotten(thread);
    settle_sums<T, Multiply>(sum);
    STW_UNROLL
    for (int i = 0; i < T::fragments_m; ++i)
      STW_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int64_t row = tile.row + row_of<T>(t) + 16 * i + 8 * half, column = tile.column + t / 32 % T::warps_n * T::warp_n;
        STW_UNROLL
        for (int four = 0; four < T::fragments_n; four += 4) {
          const Philox4 random = turned_in_quad(rounding_block(rounding, row * out.c_stride + column + 8 * (four + t % quad)));
          STW_UNROLL
          for (int j = 0; j < 4; ++j) {
            const auto round = [&](float& x, uint32_t bits) { x = Multiply::settled(rounded_gradient(x, bits), -0.0f); };
            round(sum[i][four + j][2 * half], random.w[j] & 0xffffu);
            round(sum[i][four + j][2 * half + 1], random.w[j] >> 16);
          }
        }
      }
  };

  constexpr int ahead = T::stages - (Multiply::asynchronous ? 2 : 1);   // slices that are asked for before they are used
  const Multiply multiply(thread);
  STW_UNROLL
  for (int stage = 0; stage < ahead; ++stage) copy_next(stage);
  int stage = 0;
  const auto next_slice = [&](const auto& compute) {   // compute(a, b, copy), which calls copy() once
    wait_copies<ahead - 1>();
    if constexpr (Multiply::asynchronous) Multiply::show_copies();
    __syncthreads();   // this slice is there for all, and nobody uses the one before any more, or (asynchronous) the one before that
    const uint16_t *a = slices + stage * (T::slice_a + T::slice_b), *b = a + T::slice_a;
    compute(a, b, [&] { copy_next((stage + ahead) % T::stages); });
    stage = (stage + 1) % T::stages;
    --slices_left;
  };
  while (slices_left > 0) {
    if constexpr (Multiply::asynchronous) {
      // Whole slices by themselves: the compiler lets products run on across a loop where nothing else writes the sums. Rounded, a sample's
      // last slice is one, too: where sums are written behind it, it may have no product of its own.
      STW_ROLLED
      for (; in_use.steps - in_use.step >= (rounded ? 1 : T::slice_steps); in_use.step += T::slice_steps) {
        next_slice([&](const uint16_t* a, const uint16_t* b, const auto& copy) {
          multiply.whole(sum, a, b);
          copy();
        });
        Multiply::template finish<1>();
      }
      Multiply::template finish<0>();
      if constexpr (rounded) {
        round_sample(in_use.number);
        in_use = {in_use.number + 1, 0, in_use.steps};
      } else {
        if (in_use.step < in_use.steps)
          next_slice([&](const uint16_t* a, const uint16_t* b, const auto& copy) {
            multiply(sum, a, b, in_use.steps - in_use.step);
            copy();
          });
        if (in_use.number < last) in_use = {in_use.number + 1, 0, steps_of_product(in_use.number + 1)};
      }
    } else {
      next_slice([&](const uint16_t* a, const uint16_t* b, const auto& copy) { multiply(sum, a, b, in_use.steps - in_use.step, copy); });
      const int part = in_use.number;
      if (advance(in_use) && rounded) round_sample(part);
    }
  }

  if constexpr (Ending::stored) {
    store_sums<T, dtype, Multiply>(sum, all, out, tile, slices, forgotten(thread));
  } else {
    static_assert(!Multiply::asynchronous);
    for_pairs<T>(out, tile, forgotten(thread), [&](int i, int j, int half, int64_t row, int64_t column, int64_t n) {
      if (n > 0) end_sums(ending, out, row, column, Float2{{sum[i][j][2 * half], sum[i][j][2 * half + 1]}}, n, tile.row != tile.column);
    });
  }
}

// Whether an operand can be copied in chunks of 16 bytes: all of them are aligned, and each lies wholly inside of the operand, in
// zeros behind it (`padded`), or outside. The number of rows never decides.
inline bool whole_chunks(const void* operand, int64_t stride, int64_t contiguous, bool padded) {
  return reinterpret_cast<uintptr_t>(operand) % 16 == 0 && stride % chunk == 0 && (padded || contiguous % chunk == 0);
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

template <class T, DType dtype, Contiguous a_along, Contiguous b_along, bool rounded, class Ending>
void launch_tiles(const Launch& l, int64_t tiles, const Products& all, const Ending& ending) {
  assert(all.restart == 0 || (may_restart<a_along, b_along>));
  if (tiles > 0)
    launch(l, tile_product_kernel<T, dtype, a_along, b_along, rounded, Ending>, static_cast<unsigned>(tiles), T::threads, T::shared_bytes, all, ending);
}

// Calls in_tile(T{}) with the tile T whose number is `best`, or that which a developer forces. A product that the forced tile does not take
// is refused: another tile in its place would be taken for the forced one.
template <class... T>
struct TilesToChoose {
  template <class InTile>
  static void choose(int best, const InTile& in_tile) {
    DeveloperSwitches& switches = developer_switches();
    const int number = switches.tile >= 0 ? switches.tile : best;
    if (((T::number == number && (in_tile(T{}), true)) || ...)) return;
    ++switches.refused;
  }
};

}  // namespace stw::kernels::cuda
