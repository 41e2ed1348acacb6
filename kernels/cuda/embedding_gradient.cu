// table_gradient[token] += Σ dy over the rows that hold the token: a scatter, made deterministic by sorting.
//
// The rows are sorted by token with a stable radix sort (8 bits a pass, as many passes as the vocabulary needs), so that the
// rows of a token stand side by side in their old order. Then every token's row of the table is a serial sum that starts from
// the buffer, of what the token has in each chain_terms rows of a sample, added up from +0 first; a quad for 16 columns. A cut of
// the batch between samples changes nothing.
//
// A pass of the sort: every warp counts the digits of its tile of rows; one block turns the counts, digit by digit and tile
// by tile, into the places where they begin; every warp puts its rows there, 32 at a time, each behind those before it with
// the same digit. Floor of the whole: dy read once, the rows of the table that occur read and written; the sort moves some
// tens of bytes a row.
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/token_sort.h"

namespace stw::kernels::cuda {

static constexpr int warp = 32, block_warps = block_threads / warp;

static __global__ void __launch_bounds__(block_threads) list_rows_kernel(EmbeddingArgs args, TokenEntry* entries) {
  for (int64_t row = thread_of_grid(); row < args.rows; row += static_cast<int64_t>(gridDim.x) * blockDim.x)
    entries[row] = {args.tokens[row], static_cast<int32_t>(row)};
}

STW_DEVICE unsigned digit_of(TokenEntry entry, int shift) { return static_cast<unsigned>(entry.token >> shift) % sort_digits; }

// counts[digit][tile]
static __global__ void __launch_bounds__(block_threads) count_digits_kernel(const TokenEntry* entries, int64_t rows, int64_t tiles, int shift, int32_t* counts) {
  STW_SHARED(int, counted, block_warps * sort_digits);
  const int lane = static_cast<int>(threadIdx.x % warp);
  int* const mine = counted + static_cast<int>(threadIdx.x / warp) * sort_digits;
  for (int64_t tile = thread_of_grid() / warp; tile < tiles; tile += static_cast<int64_t>(gridDim.x) * block_warps) {
    for (int digit = lane; digit < sort_digits; digit += warp) mine[digit] = 0;
    __syncwarp();
    for (int64_t i = tile * sort_tile + lane; i < min(rows, (tile + 1) * sort_tile); i += warp) atomicAdd(mine + digit_of(entries[i], shift), 1);
    __syncwarp();
    for (int digit = lane; digit < sort_digits; digit += warp) counts[digit * tiles + tile] = mine[digit];
    __syncwarp();
  }
}

// counts[i] = counts[0] + … + counts[i - 1], by one block.
static constexpr int scan_threads = 1024;
static __global__ void __launch_bounds__(scan_threads) begin_digits_kernel(int32_t* counts, int64_t count) {
  STW_SHARED(int, warps, scan_threads / warp);
  const int lane = static_cast<int>(threadIdx.x % warp), me = static_cast<int>(threadIdx.x / warp);
  int before = 0;
  for (int64_t begin = 0; begin < count; begin += scan_threads) {
    const int64_t i = begin + threadIdx.x;
    const int mine = i < count ? counts[i] : 0;
    int sum = mine;   // of the lanes up to this one
    for (unsigned by = 1; by < warp; by *= 2) {
      const int other = __shfl_up_sync(all_lanes, sum, by);
      if (lane >= static_cast<int>(by)) sum += other;
    }
    if (lane == warp - 1) warps[me] = sum;
    __syncthreads();
    int total = 0, place = before;
    for (int w = 0; w < scan_threads / warp; ++w) {
      if (w < me) place += warps[w];
      total += warps[w];
    }
    if (i < count) counts[i] = place + sum - mine;
    before += total;
    __syncthreads();
  }
}

static __global__ void __launch_bounds__(block_threads) place_rows_kernel(const TokenEntry* entries, int64_t rows, int64_t tiles, int shift, const int32_t* begins, TokenEntry* sorted) {
  STW_SHARED(int, next, block_warps * sort_digits);
  const int lane = static_cast<int>(threadIdx.x % warp);
  int* const mine = next + static_cast<int>(threadIdx.x / warp) * sort_digits;
  for (int64_t tile = thread_of_grid() / warp; tile < tiles; tile += static_cast<int64_t>(gridDim.x) * block_warps) {
    for (int digit = lane; digit < sort_digits; digit += warp) mine[digit] = begins[digit * tiles + tile];
    __syncwarp();
    const int64_t end = min(rows, (tile + 1) * sort_tile);
    for (int64_t first = tile * sort_tile; first < end; first += warp) {
      const bool present = first + lane < end;
      const TokenEntry entry = present ? entries[first + lane] : TokenEntry{0, 0};
      const unsigned digit = digit_of(entry, shift);
      unsigned alike = __ballot_sync(all_lanes, present);   // lanes with this lane's digit
      for (int bit = 0; (1 << bit) < sort_digits; ++bit) {
        const bool set = (digit >> bit & 1u) != 0;
        const unsigned with = __ballot_sync(all_lanes, set);
        alike &= set ? with : ~with;
      }
      const int place = mine[digit], before = __popc(alike & ((1u << lane) - 1));
      __syncwarp();
      if (present && before == 0) mine[digit] = place + __popc(alike);
      if (present) sorted[place + before] = entry;
      __syncwarp();
    }
  }
}

// Rows of a token before row `end` from number `at` on, as long as there are so many: their loads are under way together, and a frequent
// token is a chain of additions instead of one of accesses to memory.
template <int fetched, DType dtype, class Count>
STW_DEVICE F16 fold_rows(const EmbeddingArgs& args, const TokenEntry* entries, int32_t token, int64_t end, int64_t i, Count n, int64_t& at, F16 sum) {
  const auto is_wanted = [&](const TokenEntry& entry) { return entry.token == token && entry.row < end; };
  for (; at + fetched <= args.rows && is_wanted(entries[at + fetched - 1]); at += fetched) {
    F16 dy[fetched];
    STW_UNROLL for (int k = 0; k < fetched; ++k) dy[k] = load_group(args.y.data, dtype, entries[at + k].row * args.features + i, n);
    STW_UNROLL for (int k = 0; k < fetched; ++k) sum = add(sum, dy[k]);
  }
  return sum;
}

// The end of the rows that are added up together with this one.
STW_DEVICE int64_t end_of_chain(const EmbeddingArgs& args, int64_t row) {
  const int64_t in_sample = row % args.rows_per_sample;
  return row - in_sample + min(args.rows_per_sample, round_up(in_sample + 1, chain_terms));
}

// A quad for 16 columns of every row that is the first of its token.
template <DType dtype>
static __global__ void __launch_bounds__(block_threads) fold_tokens_kernel(EmbeddingArgs args, bool vectors, const TokenEntry* entries) {
  const int64_t features = args.features, groups = ceil_div(features, 16);
  for_tasks_of_grid(args.rows * groups, [&](int64_t task) {
    int64_t at = task / groups;
    const int64_t i = task % groups * 16, left = features - i;
    const int32_t token = entries[at].token;
    if (at > 0 && entries[at - 1].token == token) return;
    float* const buffer = args.table_gradient + token * features;
    const auto fold = [&](auto n) {
      F16 total = load_group(buffer, DType::f32, i, n);
      while (at < args.rows && entries[at].token == token) {
        const int64_t end = end_of_chain(args, entries[at].row);
        F16 sum = zero();
        sum = fold_rows<16, dtype>(args, entries, token, end, i, n, at, sum);
        sum = fold_rows<4, dtype>(args, entries, token, end, i, n, at, sum);
        sum = fold_rows<1, dtype>(args, entries, token, end, i, n, at, sum);
        total = add(total, sum);
      }
      store_group(buffer, DType::f32, i, total, n);
    };
    if (vectors && left >= 16) fold(Whole{});
    else fold(min(static_cast<int64_t>(16), left));
  });
}

void embedding_gradient(const Launch& l, const EmbeddingArgs& args) {
  STW_ASSERT_WORKSPACE(embedding_gradient);
  if (!args.accumulate) fill(l, {args.table_gradient, static_cast<uint64_t>(args.vocabulary * args.features) * sizeof(float)});
  const TokenSortLayout layout = token_sort_layout(args.rows);
  auto* const workspace = static_cast<char*>(l.workspace);
  auto* from = reinterpret_cast<TokenEntry*>(workspace);
  auto* to = reinterpret_cast<TokenEntry*>(workspace + layout.second_at);
  auto* const counts = reinterpret_cast<int32_t*>(workspace + layout.counts_at);
  const int blocks = blocks_for(layout.tiles, block_warps);
  launch(l, list_rows_kernel, blocks_for(args.rows, block_threads), block_threads, 0, args, from);
  for (int shift = 0; shift < 31 && (args.vocabulary - 1) >> shift != 0; shift += 8) {
    launch(l, count_digits_kernel, blocks, block_threads, 0, from, args.rows, layout.tiles, shift, counts);
    launch(l, begin_digits_kernel, 1, scan_threads, 0, counts, layout.tiles * sort_digits);
    launch(l, place_rows_kernel, blocks, block_threads, 0, from, args.rows, layout.tiles, shift, counts, to);
    TokenEntry* const swap = from;
    from = to;
    to = swap;
  }
  const bool vectors = vectors_at(args.y.data, args.y.dtype, args.features) && vectors_at(args.table_gradient, DType::f32, args.features);
  for_dtype(args.y.dtype, [&](auto stored) {
    launch(l, fold_tokens_kernel<stored.dtype>, blocks_for_elements(args.rows * round_up(args.features, 16)), block_threads, 0, args,
           vectors, from);
  });
}

}  // namespace stw::kernels::cuda
