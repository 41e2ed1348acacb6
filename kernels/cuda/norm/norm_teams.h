// How a norm and its gradient divide rows. A team of 16 to 256 threads has a row; a block has one or more
// teams. The team fetches its row into shared memory as fp32, with several loads of each thread in flight.
// Its first sixteen threads, one a lane, then compute the CPU's sums (norm_row.h), each a chain of additions
// over the groups. After that, the whole team goes over the row again. Memory is read once, and a chain costs
// the latency of one addition a group: 4 cycles.
//
// A row that exceeds shared memory is fetched piece by piece, again for every pass.
#pragma once
#include "kernels/common/norm_row.h"
#include "kernels/cuda/ahead.h"

namespace stw::kernels::cuda {

struct NormTeams {
  int threads, rows;  // Threads of a team; teams of a block. Powers of two.
  int piece, stride;  // Floats of a row in shared memory at a time; from one row there to the next.
  size_t bytes(int arrays) const {
    return static_cast<size_t>(rows) * static_cast<size_t>(stride * arrays) * sizeof(float);
  }
  int block() const { return threads * rows; }
  int blocks(int64_t all_rows) const { return blocks_for(all_rows, rows); }
};

inline constexpr int most_teams = block_threads / 16;
// 45 KiB, which any device has, with room for the statistics.
inline constexpr int most_staged_floats = 11520;

// `arrays` arrays of a row's length lie in shared memory.
inline NormTeams norm_teams(int64_t rows, int64_t features, int arrays) {
  NormTeams t = {16, 1, 0, 0};
  const int most = (most_staged_floats / arrays - 48) / 16 * 16;
  t.piece = features < most ? static_cast<int>(round_up(features, 16)) : most;
  t.stride = (t.piece + 31) / 32 * 32 + 16;  // The two rows of a warp begin in different banks.
  // Up to 16 groups a quad. A larger team would have more threads that only wait while sixteen of them sum.
  while (t.threads < block_threads && t.piece > 64 * t.threads) t.threads *= 2;
  // More rows a block, as long as enough blocks remain and eight blocks fit into an SM.
  constexpr int enough_blocks = 512, shared_floats = 6400;
  while (t.block() < block_threads && 2 * t.rows * arrays * t.stride <= shared_floats &&
         (t.block() < 32 || rows >= int64_t{2} * t.rows * enough_blocks))
    t.rows *= 2;
  return t;
}

// A bool as a type, for bodies that are compiled for both cases.
template <bool is>
struct BoolConstant {
  static constexpr bool value = is;
};

// A thread's place.
struct NormTeam {
  int row, thread;  // Row in the block, thread in the team.
  __device__ bool sums() const { return thread < 16; }
};
STW_DEVICE NormTeam place_in(const NormTeams& t) {
  const int thread = static_cast<int>(threadIdx.x);
  return {thread / t.threads, thread % t.threads};
}

// Visits this thread's groups of a piece of a row, like for_groups_ahead.
template <int ahead, class Load, class Use>
STW_DEVICE void for_team_groups(const NormTeams& teams, const NormTeam& team, int count, bool vectors,
                                const Load& load, const Use& use) {
  for_groups_ahead<ahead>(team.thread / quad, teams.threads / quad, count, vectors, load, use);
}

// Calls fetch(begin, count) and use(begin, count) for the pieces of a row. A row that fits is not fetched
// again. Called by all threads of a block.
template <class Fetch, class Use>
STW_DEVICE void for_pieces(int64_t features, int piece, bool is_first, const Fetch& fetch, const Use& use) {
  for (int64_t begin = 0; begin < features; begin += piece) {
    const int count = features - begin < piece ? static_cast<int>(features - begin) : piece;
    if (is_first || features > piece) {
      __syncthreads();  // All threads have finished with the earlier contents.
      fetch(begin, count);
      __syncthreads();
    }
    use(begin, count);
  }
}

// The statistics of a block's rows, by the threads that sum. `live`: the team has a row. fetch writes the row
// to `staged`, with +0 in the lanes after its end.
template <class Fetch>
STW_DEVICE RowStatistics team_statistics(const NormArgs& args, const NormTeams& teams, const NormTeam& team,
                                         bool live, const float* staged, const Fetch& fetch) {
  constexpr int ahead = 8;
  const bool sums = live && team.sums();
  const float* const lane = staged + team.thread;
  const auto at = [&](int group) { return lane[16 * group]; };
  float mean = 0.0f;
  if (!args.rms) {
    float sum = 0.0f;
    for_pieces(args.features, teams.piece, true, fetch, [&](int64_t, int count) {
      if (sums) for_each_ahead<ahead>((count + 15) / 16, at, [&](float x) { sum = sum + x; });
    });
    if (sums) mean = fold_threads(sum) / static_cast<float>(args.features);
  }
  float squares = 0.0f;
  const auto add_square = [&](float x) {
    const float centred = x - mean;
    squares = fma1(centred, centred, squares);
  };
  for_pieces(args.features, teams.piece, args.rms, fetch, [&](int64_t, int count) {
    if (!sums) return;
    for_each_ahead<ahead>(count / 16, at, add_square);
    if (team.thread < count % 16) add_square(at(count / 16));
  });
  return {mean, sums ? rstd_of(fold_threads(squares), args.features, args.epsilon) : 0.0f};
}

}  // namespace stw::kernels::cuda
