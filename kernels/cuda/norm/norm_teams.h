// How a norm and its gradient share rows out. A row belongs to a team of 16 to 256 threads, a block to one team or several.
// The team fetches its row into shared memory as fp32, several loads of each thread under way; its first sixteen threads,
// one a lane, then run the CPU's sums over it (norm_row.h), each a chain of additions over the groups; and the whole team
// goes over the row again. Memory sees a row once, and a chain costs the latency of an addition a group: 4 cycles.
//
// A row longer than shared memory lies there piece by piece, and is fetched again for every pass.
#pragma once
#include "kernels/common/norm_row.h"
#include "kernels/cuda/ahead.h"

namespace stw::kernels::cuda {

struct NormTeams {
  int threads, rows;  // of a team; teams of a block. Powers of two
  int piece, stride;  // floats of a row that are there at a time; from one row in shared memory to the next
  size_t bytes(int arrays) const { return static_cast<size_t>(rows) * static_cast<size_t>(stride * arrays) * sizeof(float); }
  int block() const { return threads * rows; }
  int blocks(int64_t all_rows) const { return blocks_for(all_rows, rows); }
};

inline constexpr int most_teams = block_threads / 16;
inline constexpr int most_staged_floats = 11520;   // 45 KiB: any device has it, and room for the statistics

// `arrays` of a row's length lie in shared memory.
inline NormTeams norm_teams(int64_t rows, int64_t features, int arrays) {
  NormTeams t = {16, 1, 0, 0};
  const int most = (most_staged_floats / arrays - 48) / 16 * 16;
  t.piece = features < most ? static_cast<int>(round_up(features, 16)) : most;
  t.stride = (t.piece + 31) / 32 * 32 + 16;   // the two rows of a warp in different banks
  while (t.threads < block_threads && t.piece > 64 * t.threads) t.threads *= 2;   // 16 groups a quad: few teams have threads that only wait for sums
  // More rows a block where enough blocks remain to share out, and as long as eight blocks fit into an SM.
  constexpr int enough_blocks = 512, shared_floats = 6400;
  while (t.block() < block_threads && 2 * t.rows * arrays * t.stride <= shared_floats && (t.block() < 32 || rows >= int64_t{2} * t.rows * enough_blocks)) t.rows *= 2;
  return t;
}

template <bool is> struct Known { static constexpr bool value = is; };   // for bodies that exist for either case

// A thread's place.
struct NormTeam {
  int row, thread;   // of the block, of the team
  __device__ bool sums() const { return thread < 16; }
};
STW_DEVICE NormTeam place_in(const NormTeams& t) {
  const int thread = static_cast<int>(threadIdx.x);
  return {thread / t.threads, thread % t.threads};
}

// For this thread's groups of a piece of a row, as for_groups_ahead.
template <int ahead, class Load, class Use>
STW_DEVICE void for_team_groups(const NormTeams& teams, const NormTeam& team, int count, bool vectors, const Load& load, const Use& use) {
  for_groups_ahead<ahead>(team.thread / quad, teams.threads / quad, count, vectors, load, use);
}

// fetch(begin, count) and use(begin, count) for the pieces of a row; it is not fetched again where it is there as a whole. For
// all threads of a block.
template <class Fetch, class Use>
STW_DEVICE void for_pieces(int64_t features, int piece, bool is_first, const Fetch& fetch, const Use& use) {
  for (int64_t begin = 0; begin < features; begin += piece) {
    const int count = features - begin < piece ? static_cast<int>(features - begin) : piece;
    if (is_first || features > piece) {
      __syncthreads();   // all are done with what was there
      fetch(begin, count);
      __syncthreads();
    }
    use(begin, count);
  }
}

// The statistics of the rows of a block, by its threads that sum: `live` where the team has a row, `staged` is where fetch
// puts it, with +0 in the lanes past its end.
template <class Fetch>
STW_DEVICE RowStatistics team_statistics(const NormArgs& args, const NormTeams& teams, const NormTeam& team, bool live, const float* staged, const Fetch& fetch) {
  constexpr int ahead = 8;
  const bool sums = live && team.sums();
  const float* const lane = staged + team.thread;
  const auto at = [&](int group) { return lane[16 * group]; };
  float mean = 0.0f;
  if (!args.rms) {
    float sum = 0.0f;
    for_pieces(args.features, teams.piece, true, fetch, [&](int64_t, int count) {
      if (sums) in_order<ahead>((count + 15) / 16, at, [&](float x) { sum = sum + x; });
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
    in_order<ahead>(count / 16, at, add_square);
    if (team.thread < count % 16) add_square(at(count / 16));
  });
  return {mean, sums ? rstd_of(fold_threads(squares), args.features, args.epsilon) : 0.0f};
}

}  // namespace stw::kernels::cuda
