// table_gradient[token] += Σ dy over the rows that hold the token: a scatter, made deterministic by sorting.
//
// A stable radix sort by token (8 bits a pass, as many passes as the vocabulary needs) puts the rows of a
// token next to each other, in their old order. The rows of a token within each chain_terms rows of a sample
// are added up from +0, and the results are added in order to the buffer; a quad has 16 columns. A cut of the
// batch between samples changes nothing.
//
// A pass of the sort is one kernel. A block has a range of the rows. Their places in the output depend on how
// often each digit occurs before and after the range, so the block counts the digits of all rows. Each of its
// warps has a part of the range and places its rows 32 at a time, each after the earlier ones with the same
// digit. So at most 64 blocks read the tokens once a pass, mostly from the second-level cache. The usual
// three kernels (histogram, scan, scatter) would wait for each other. The lower bound of the whole is the
// time to read dy once, and to read and write the table rows that occur.
//
// For kept rows, a token's sum begins at +0 and is added to the buffer at its end. Before that, every element
// of the buffer gets +0 added, which reads and writes the table once. Or the buffer is a slice of the table:
// it gets +0, and quads whose token is not in the slice do nothing.
//
// Workspace: (token, row) of every row, twice.
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/embedding/position_sums.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

struct TokenEntry {
  int32_t token, row;
};

static constexpr int warp = 32, sort_digits = 256, sort_threads = 512, sort_warps = sort_threads / warp,
                     most_sort_blocks = 64;

STW_DEVICE int digit_of(int32_t token, int shift) {
  return static_cast<int>(static_cast<unsigned>(token >> shift) % sort_digits);
}

// `entries`: the result of the pass before; null: the rows in order. `block_rows`: a multiple of
// sort_threads.
static __global__ void __launch_bounds__(sort_threads)
    sort_pass_kernel(const int32_t* tokens, const TokenEntry* entries, int64_t rows, int64_t block_rows,
                     int shift, TokenEntry* sorted) {
  // Rows with each digit: before the block's range, after it, in every warp's part.
  STW_SHARED(int, counted, (2 + sort_warps) * sort_digits);
  STW_SHARED(int, of_warps, sort_digits / warp);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % warp, me = thread / warp;
  int* const after = counted + sort_digits;
  int* const parts = after + sort_digits;
  int* const mine = parts + me * sort_digits;
  for (int i = thread; i < (2 + sort_warps) * sort_digits; i += sort_threads) counted[i] = 0;
  __syncthreads();
  const int64_t begin = blockIdx.x * block_rows, end = min(rows, begin + block_rows),
                part_rows = block_rows / sort_warps;
  const int64_t first = min(rows, begin + me * part_rows), last = min(rows, first + part_rows);
  const auto entry_at = [&](int64_t i) {
    return entries == nullptr ? TokenEntry{tokens[i], static_cast<int32_t>(i)} : entries[i];
  };
  const auto count = [&](int* counts, int64_t from, int64_t to, int64_t step) {
    for_each_ahead<8>(
        from < to ? ceil_div(to - from, step) : 0, [&](int64_t i) { return entry_at(from + i * step).token; },
        [&](int32_t token) { atomicAdd(counts + digit_of(token, shift), 1); });
  };
  count(counted, thread, begin, sort_threads);
  count(after, end + thread, rows, sort_threads);
  count(mine, first + lane, last, warp);
  __syncthreads();
  // One thread for each digit: finds where the block's rows with the digit begin, and replaces each warp's
  // count of the digit by the count of the earlier warps.
  const bool has_digit = thread < sort_digits;
  int total = 0, sum = 0;
  if (has_digit) {
    for (int w = 0; w < sort_warps; ++w) {
      const int of_warp = parts[w * sort_digits + thread];
      parts[w * sort_digits + thread] = total;
      total += of_warp;
    }
    total += counted[thread] + after[thread];
    sum = total;  // Over the lanes up to this one.
    for (unsigned by = 1; by < warp; by *= 2) {
      const int other = __shfl_up_sync(all_lanes, sum, by);
      if (lane >= static_cast<int>(by)) sum += other;
    }
    if (lane == warp - 1) of_warps[me] = sum;
  }
  __syncthreads();
  if (has_digit) {
    int place = sum - total + counted[thread];
    for (int w = 0; w < me; ++w) place += of_warps[w];
    counted[thread] = place;
  }
  __syncthreads();
  for (int64_t at = first; at < last; at += warp) {
    const bool present = at + lane < last;
    const TokenEntry entry = present ? entry_at(at + lane) : TokenEntry{0, 0};
    const int digit = digit_of(entry.token, shift);
    unsigned alike = __ballot_sync(all_lanes, present);  // Lanes with this lane's digit.
    for (int bit = 0; (1 << bit) < sort_digits; ++bit) {
      const bool set = (digit >> bit & 1) != 0;
      const unsigned with = __ballot_sync(all_lanes, set);
      alike &= set ? with : ~with;
    }
    const int earlier = mine[digit], before = __popc(alike & ((1u << lane) - 1));
    __syncwarp();
    if (present && before == 0) mine[digit] = earlier + __popc(alike);
    if (present) sorted[counted[digit] + earlier + before] = entry;
    __syncwarp();
  }
}

// Adds rows of a token to `sum`: those before row `end`, from entry `at` on, as long as `fetched` of them are
// left. Moves `at` past them. `fetched` rows are loaded together, so that a frequent token is a chain of
// additions instead of a chain of memory accesses.
template <int fetched, DType dtype, class Count>
STW_DEVICE F16 fold_rows(const EmbeddingArgs& args, const TokenEntry* entries, int32_t token, int64_t end,
                         int64_t i, Count n, int64_t& at, F16 sum) {
  const auto is_wanted = [&](const TokenEntry& entry) { return entry.token == token && entry.row < end; };
  for (; at + fetched <= args.rows && is_wanted(entries[at + fetched - 1]); at += fetched) {
    F16 dy[fetched];
    STW_UNROLL
    for (int k = 0; k < fetched; ++k)
      dy[k] = load_group(args.y.data, dtype, entries[at + k].row * args.features + i, n);
    STW_UNROLL
    for (int k = 0; k < fetched; ++k) sum = add(sum, dy[k]);
  }
  return sum;
}

// The end of the rows whose sums are in one chain with this row.
STW_DEVICE int64_t end_of_chain(const EmbeddingArgs& args, int64_t row) {
  const int64_t in_sample = row % args.rows_per_sample;
  return row - in_sample + min(args.rows_per_sample, round_up(in_sample + 1, chain_terms));
}

// A task of a quad is 16 columns of a sorted row. The quad sums all rows of a token if its row is the first
// one of the token, and otherwise does nothing. With with_positions, the tasks of position_gradient follow.
// `apart`: sums begin at +0 and are added to the buffer at their end.
template <DType dtype, bool apart>
static __global__ void __launch_bounds__(block_threads)
    fold_tokens_kernel(EmbeddingArgs args, bool vectors, bool vectors_of_positions,
                       const TokenEntry* entries) {
  const int64_t features = args.features, groups = ceil_div(features, 16), of_rows = args.rows * groups;
  for_tasks_of_grid(of_rows + (args.with_positions ? args.position_rows * groups : 0), [&](int64_t task) {
    if (task >= of_rows) return sum_position<dtype>(args, vectors_of_positions, task - of_rows);
    int64_t at = task / groups;
    const int64_t i = task % groups * 16, left = features - i;
    const int32_t token = entries[at].token;
    if (at > 0 && entries[at - 1].token == token) return;
    const int64_t row = token - args.first_token;
    if (args.slice_tokens > 0 && (row < 0 || row >= args.slice_tokens)) return;
    float* const buffer = args.table_gradient + row * features;
    const auto fold = [&](auto n) {
      F16 total = apart ? zero() : load_group(buffer, DType::f32, i, n);
      while (at < args.rows && entries[at].token == token) {
        const int64_t end = end_of_chain(args, entries[at].row);
        F16 sum = zero();
        sum = fold_rows<16, dtype>(args, entries, token, end, i, n, at, sum);
        sum = fold_rows<4, dtype>(args, entries, token, end, i, n, at, sum);
        sum = fold_rows<1, dtype>(args, entries, token, end, i, n, at, sum);
        total = add(total, sum);
      }
      if constexpr (apart) total = add(total, load_group(buffer, DType::f32, i, n));
      store_group(buffer, DType::f32, i, total, n);
    };
    if (vectors && left >= 16) fold(FullGroup{});
    else fold(min(static_cast<int64_t>(16), left));
  });
}

static __global__ void __launch_bounds__(block_threads)
    add_zero_kernel(float* data, int64_t count, bool vectors) {
  const int64_t whole = vectors ? count / 16 * 16 : 0;
  const auto add_zero = [&](int64_t at, auto n) {
    store_group(data, DType::f32, at, add(load_group(data, DType::f32, at, n), zero()), n);
  };
  STW_ROLLED
  for (int64_t at = thread_of_grid() / quad * 16; at < count;
       at += static_cast<int64_t>(gridDim.x) * blockDim.x / quad * 16) {
    if (at < whole) add_zero(at, FullGroup{});
    else add_zero(at, min(static_cast<int64_t>(16), count - at));
  }
}

template <bool apart>
static void fold_tokens(const Launch& l, const EmbeddingArgs& args) {
  auto* sorted = static_cast<TokenEntry*>(l.workspace);
  TokenEntry* to = sorted + args.rows;
  const int64_t block_rows = round_up(ceil_div(args.rows, most_sort_blocks), sort_threads);
  for (int shift = 0; shift == 0 || (shift < 31 && (args.vocabulary - 1) >> shift != 0); shift += 8) {
    launch(l, sort_pass_kernel, blocks_for(args.rows, block_rows), sort_threads, 0, args.tokens,
           shift == 0 ? nullptr : sorted, args.rows, block_rows, shift, to);
    TokenEntry* const swap = sorted;
    sorted = to;
    to = swap;
  }
  const bool vectors = vectors_at(args.y.data, args.y.dtype, args.features) &&
                       vectors_at(args.table_gradient, DType::f32, args.features);
  for_dtype(args.y.dtype, [&](auto stored) {
    launch(l, fold_tokens_kernel<stored.dtype, apart>,
           blocks_for_elements((args.rows + (args.with_positions ? args.position_rows : 0)) *
                               round_up(args.features, 16)),
           block_threads, 0, args, vectors, args.with_positions && position_vectors(args), sorted);
  });
}

void embedding_gradient(const Launch& l, const EmbeddingArgs& args) {
  STW_ASSERT_WORKSPACE(embedding_gradient);
  if (!args.accumulate)
    fill(l, {args.table_gradient, static_cast<uint64_t>(args.vocabulary * args.features) * sizeof(float)});
  fold_tokens<false>(l, args);
}

void kept_rows_gradient(const Launch& l, const EmbeddingArgs& args) {
  STW_ASSERT_WORKSPACE(kept_rows_gradient);
  assert(!args.with_positions);
  if (!args.accumulate) {
    fill(l, {args.table_gradient, static_cast<uint64_t>(args.slice_tokens * args.features) * sizeof(float)});
    return fold_tokens<false>(l, args);
  }
  const int64_t count = args.vocabulary * args.features;
  launch(l, add_zero_kernel, blocks_for_elements(count), block_threads, 0, args.table_gradient, count,
         vectors_at(args.table_gradient, DType::f32));
  fold_tokens<true>(l, args);
}

}  // namespace stw::kernels::cuda
