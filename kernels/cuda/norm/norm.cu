// LayerNorm and RMSNorm: y = (x - mean)·rstd·w + b. A team of threads has a row, which stays in shared memory
// between the passes (norm_teams.h).
//
// The lower bound is the time to read x and to write y: 2·rows·features elements, 50 MB of bf16 for 16384
// rows of 768, 15 µs at 3.35 TB/s. The blocks of an SM hold 64 such rows. Their threads issue four groups of
// loads each at a time, 32 KB; 15 KB in flight all the time would suffice (ahead.h). A block needs about 2000
// cycles for the loads, about 900 for 2 chains of 48 additions and their exchanges, and about 1200 for
// weights and stores. In that time, an H200 moves 85 KB for the SM, of the 196 KB that its blocks read and
// write. A warp issues about 980 instructions for two rows. An SM has 124 of the 16384 rows, and its four
// schedulers need 15,000 cycles for them, 9 µs. So memory is the limit. With a few hundred rows, each block
// has one row, all rows are in flight at once, and the sum of these latencies remains, 2 µs. All of this is
// calculated, not measured.
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/norm/norm_teams.h"

namespace stw::kernels::cuda {

template <class Stored>
static __global__ void __launch_bounds__(block_threads, Stored::alike ? 4 : 2)
    norm_kernel(NormArgs args, NormTeams teams, bool vectors) {
  STW_DYNAMIC_SHARED(float, shared);
  STW_SHARED(RowStatistics, statistics, most_teams);
  const NormTeam team = place_in(teams);
  float* const staged = shared + team.row * teams.stride;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * teams.rows; first < args.rows;
       first += static_cast<int64_t>(gridDim.x) * teams.rows) {
    const int64_t row = first + team.row, base = row * args.features;
    const bool live = row < args.rows;
    const auto fetch = [&](int64_t begin, int count) {
      const DType dtype = Stored::of(args.x.dtype);
      const void* const x = element(args.x.data, dtype, base + begin);
      for_team_groups<4>(
          teams, team, live ? count : 0, vectors, [&](int at, auto n) { return load_group(x, dtype, at, n); },
          [&](const F16& values, int at, auto) { store_shared(staged + at, values); });
    };
    const RowStatistics mine = team_statistics(args, teams, team, live, staged, fetch);
    if (team.thread == 0) statistics[team.row] = mine;
    __syncthreads();
    const F16 mean = splat(statistics[team.row].mean), rstd = splat(statistics[team.row].rstd);
    const auto write = [&](auto has_bias) {
      for_pieces(args.features, teams.piece, false, fetch, [&](int64_t begin, int count) {
        struct Affine {
          F16 w, b;
        };
        const DType dtype = Stored::of(args.y.dtype), weight_dtype = Stored::of(args.weight_dtype);
        void* const y = element(args.y.data, dtype, base + begin);
        const void* const w = element(args.weight, weight_dtype, begin);
        const void* const b = has_bias.value ? element(args.bias, weight_dtype, begin) : nullptr;
        for_team_groups<4>(
            teams, team, live ? count : 0, vectors,
            [&](int at, auto n) {
              return Affine{load_group(w, weight_dtype, at, n),
                            has_bias.value ? load_group(b, weight_dtype, at, n) : zero()};
            },
            [&](const Affine& f, int at, auto n) {
              const F16 factor = add(f.w, splat(args.weight_offset)),
                        normalized = mul(sub(load(staged + at, FullGroup{}), mean), rstd);
              store_group(y, dtype, at,
                          has_bias.value ? fma(normalized, factor, f.b) : mul(normalized, factor), n);
            });
      });
    };
    if (args.bias != nullptr) write(BoolConstant<true>{});
    else write(BoolConstant<false>{});
  }
}

void norm(const Launch& l, const NormArgs& args) {
  const NormTeams teams = norm_teams(args.rows, args.features, 1);
  const bool vectors = vectors_at(args.x.data, args.x.dtype, args.features) &&
                       vectors_at(args.y.data, args.y.dtype, args.features) &&
                       vectors_at(args.weight, args.weight_dtype) && vectors_at(args.bias, args.weight_dtype);
  for_dtypes({args.x.dtype, args.y.dtype, args.weight_dtype}, [&](auto stored) {
    launch(l, norm_kernel<decltype(stored)>, teams.blocks(args.rows), teams.block(), teams.bytes(1), args,
           teams, vectors);
  });
}

}  // namespace stw::kernels::cuda
