// Gradient of LayerNorm and RMSNorm, added to that of the residual. With h = (x - mean)·rstd and g = dy·w:
//   dx = addend + rstd·(g - mean(g) - h·mean(g·h))   (RMSNorm: without mean(g))
//   dw = Σ_rows dy·h,  db = Σ_rows dy
// dw and db are summed in tiles of token_tile rows that restart in every sample, each from +0 in the order of
// its rows. The tiles of each chain_terms rows of a sample are added up from +0, and the results are added in
// order to the buffer (token_tiles.h). A cut of the batch between samples changes nothing.
//
// If there are at least as many tiles as multiprocessors, a block takes a whole tile. Some rows at a time lie
// in shared memory. Their teams (norm_teams.h) compute the statistics and dx, and every thread adds the rows
// to the sums of its columns in its registers. So x and dy are read once. The lower bound is the time to read
// x, dy and addend and to write dx: 4·rows·features elements, 100 MB of bf16 for 16384 rows of 768, 30 µs at
// 3.35 TB/s; the sums are 1/32 of that. A block of such rows has 28 KB of shared memory: five blocks share an
// SM, and each has four rows in flight.
//
// With fewer tiles, or more than most_columns columns a thread, there are two kernels. In the first, a team
// takes a row: it keeps the statistics in the workspace and writes dx. In the second, a quad sums 16 columns
// of a tile. They read x and dy twice: 6·rows·features elements. A thread of the first kernel has four groups
// of x, dy and the weight in flight (ahead.h). A thread of the second kernel has four to eight rows of x and
// dy in flight. Both ways give the same bits. These figures are calculated, not measured.
//
// Bias gradients in the same launches have tiles of the same rows. One kernel adds up their tiles and those
// of the weight. If the addend is the dy of such a bias (the gradient of the linear op's output that was
// added to the residual before), a block sums the tile that it has loaded. Tiles of other biases are blocks
// of their own in the same launch. With two kernels, the biases' tiles come one launch earlier, because dx
// may overwrite the addend.
//
// Workspace: statistics (rows), then the tiles' sums: dw (tiles, features), db (tiles, features), and those
// of the biases.
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/norm/norm_teams.h"
#include "kernels/cuda/product/bias_sums.h"

namespace stw::kernels::cuda {

// Largest number of rows in a block that takes whole tiles: each row has at least a warp.
static constexpr int most_rows_of_block = 4;

// Stores the statistics of a team's row and the means of g and of g·h. fetch() brings pieces of the row to x
// and g in shared memory. `sums`: this thread takes part in the sums.
template <class Fetch>
STW_DEVICE void store_means(const NormArgs& args, const NormTeams& teams, const NormTeam& team, bool sums,
                            const float* x, const float* g, const RowStatistics& mine,
                            RowStatistics* statistics, float* means, const Fetch& fetch) {
  float sum = 0.0f, product = 0.0f;  // Lanes after the end of the row add nothing: g is 0 there.
  for_pieces(args.features, teams.piece, false, fetch, [&](int64_t, int count) {
    if (!sums) return;
    struct Lane {
      float x, g;
    };
    for_each_ahead<8>((count + 15) / 16,
                      [&](int group) {
                        return Lane{x[16 * group + team.thread], g[16 * group + team.thread]};
                      },
                      [&](const Lane& lane) {
                        sum = sum + lane.g;
                        product = fma1(lane.g, (lane.x - mine.mean) * mine.rstd, product);
                      });
  });
  if (!sums) return;
  const float mean_g = args.rms ? 0.0f : fold_threads(sum) / static_cast<float>(args.features);
  const float mean_gh = fold_threads(product) / static_cast<float>(args.features);
  if (team.thread == 0) {
    statistics[team.row] = mine;
    means[2 * team.row] = mean_g;
    means[2 * team.row + 1] = mean_gh;
  }
}

// x and g of a row lie in shared memory, one after the other.
template <class Stored>
static __global__ void __launch_bounds__(block_threads, Stored::alike ? 3 : 2)
    norm_rows_kernel(NormArgs args, NormTeams teams, bool vectors, RowStatistics* kept) {
  STW_DYNAMIC_SHARED(float, shared);
  STW_SHARED(RowStatistics, statistics, most_teams);
  STW_SHARED(float, means, 2 * most_teams);  // The means of g and of g·h.
  const NormTeam team = place_in(teams);
  const bool wanted = args.dx.data != nullptr;
  const DType x_dtype = Stored::of(args.x.dtype), dy_dtype = Stored::of(args.y.dtype),
              weight_dtype = Stored::of(args.weight_dtype), dx_dtype = Stored::of(args.dx.dtype),
              addend_dtype = Stored::of(args.addend.dtype);
  float* const staged = shared + team.row * 2 * teams.stride;
  float* const staged_g = staged + teams.stride;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * teams.rows; first < args.rows;
       first += static_cast<int64_t>(gridDim.x) * teams.rows) {
    const int64_t row = first + team.row, base = row * args.features;
    const bool live = row < args.rows, sums = live && team.sums();
    const auto fetch = [&](int64_t begin, int count) {
      const void* const x = element(args.x.data, x_dtype, base + begin);
      if (!wanted) {
        for_team_groups<4>(
            teams, team, live ? count : 0, vectors,
            [&](int at, auto n) { return load_group(x, x_dtype, at, n); },
            [&](const F16& values, int at, auto) { store_shared(staged + at, values); });
        return;
      }
      const void* const dy = element(args.y.data, dy_dtype, base + begin);
      const void* const w = element(args.weight, weight_dtype, begin);
      struct Operands {
        F16 x, dy, w;
      };
      for_team_groups<4>(
          teams, team, live ? count : 0, vectors,
          [&](int at, auto n) {
            return Operands{load_group(x, x_dtype, at, n), load_group(dy, dy_dtype, at, n),
                            load_group(w, weight_dtype, at, n)};
          },
          [&](const Operands& o, int at, auto) {
            store_shared(staged + at, o.x);
            store_shared(staged_g + at, mul(o.dy, add(o.w, splat(args.weight_offset))));
          });
    };
    const RowStatistics mine = team_statistics(args, teams, team, live, staged, fetch);
    if (live && team.thread == 0) kept[row] = mine;
    if (!wanted) continue;
    store_means(args, teams, team, sums, staged, staged_g, mine, statistics, means, fetch);
    __syncthreads();
    const F16 mean = splat(statistics[team.row].mean), rstd = splat(statistics[team.row].rstd);
    const F16 mean_g = splat(means[2 * team.row]), mean_gh = splat(means[2 * team.row + 1]);
    const auto write = [&](auto has_addend) {
      for_pieces(args.features, teams.piece, false, fetch, [&](int64_t begin, int count) {
        void* const dx = element(args.dx.data, dx_dtype, base + begin);
        const void* const addend =
            has_addend.value ? element(args.addend.data, addend_dtype, base + begin) : nullptr;
        for_team_groups<4>(
            teams, team, live ? count : 0, vectors,
            [&](int at, auto n) {
              return has_addend.value ? load_group(addend, addend_dtype, at, n) : zero();
            },
            [&](const F16& added, int at, auto n) {
              const F16 h = mul(sub(load(staged + at, FullGroup{}), mean), rstd);
              const F16 inner = sub(sub(load(staged_g + at, FullGroup{}), mean_g), mul(h, mean_gh));
              store_group(dx, dx_dtype, at, has_addend.value ? fma(inner, rstd, added) : mul(inner, rstd), n);
            });
      });
    };
    if (args.addend.data != nullptr) write(BoolConstant<true>{});
    else write(BoolConstant<false>{});
  }
}

static constexpr int whole_tile_threads = 128, most_columns = 16;  // For each thread.

// Shared memory of a block: the factors of the features, w + offset, and whole rows of x and dy of `teams`.
struct WholeRows {
  float *factors, *x, *dy;
};
template <class Stored>
STW_DEVICE WholeRows whole_rows(const NormArgs& args, const NormTeams& teams, float* shared, bool vectors) {
  const DType weight_dtype = Stored::of(args.weight_dtype);
  const int thread = static_cast<int>(threadIdx.x);
  const WholeRows rows = {shared, shared + teams.stride, shared + teams.stride + teams.rows * teams.stride};
  for_groups_ahead<1>(
      thread / quad, whole_tile_threads / quad, static_cast<int>(args.features), vectors,
      [&](int at, auto n) { return load_group(args.weight, weight_dtype, at, n); },
      [&](const F16& w, int at, auto) {
        store_shared(rows.factors + at, add(w, splat(args.weight_offset)));
      });
  return rows;
}

// Stores the means of g and of g·h of a team's row, where g = dy · factor. Lanes after the end of the row add
// nothing: dy is 0 there.
STW_DEVICE void store_means(const NormArgs& args, const NormTeam& team, const WholeRows& rows, const float* x,
                            const float* dy, const RowStatistics& mine, float* means) {
  const int features = static_cast<int>(args.features);
  float sum = 0.0f, product = 0.0f;
  struct Lane {
    float x, dy, factor;
  };
  for_each_ahead<8>((features + 15) / 16,
                    [&](int group) {
                      const int at = 16 * group + team.thread;
                      return Lane{x[at], dy[at], rows.factors[at]};
                    },
                    [&](const Lane& lane) {
                      const float g = lane.dy * lane.factor;
                      sum = sum + g;
                      product = fma1(g, (lane.x - mine.mean) * mine.rstd, product);
                    });
  const float mean_g = args.rms ? 0.0f : fold_threads(sum) / static_cast<float>(features);
  const float mean_gh = fold_threads(product) / static_cast<float>(features);
  if (team.thread == 0) {
    means[2 * team.row] = mean_g;
    means[2 * team.row + 1] = mean_gh;
  }
}

// The sums of a tile's columns that a thread keeps.
template <int columns>
struct ColumnSums {
  float dw[columns], db[columns], of_addend[columns];
};
template <int columns>
STW_DEVICE void add_rows(ColumnSums<columns>& sums, int features, int stride, const WholeRows& rows,
                         const RowStatistics* statistics, int count) {
  for (int r = 0; r < count; ++r) {
    const RowStatistics of_row = statistics[r];
    STW_UNROLL
    for (int k = 0; k < columns; ++k) {
      const int column = static_cast<int>(threadIdx.x) + k * whole_tile_threads;
      if (column >= features) continue;
      const float x = rows.x[r * stride + column], dy = rows.dy[r * stride + column];
      sums.dw[k] = fma1(dy, (x - of_row.mean) * of_row.rstd, sums.dw[k]);
      sums.db[k] = sums.db[k] + dy;
    }
  }
}
// The addend's rows lie in the place of x.
template <int columns>
STW_DEVICE void add_addend(ColumnSums<columns>& sums, int features, int stride, const WholeRows& rows,
                           int count) {
  for (int r = 0; r < count; ++r) STW_UNROLL
  for (int k = 0; k < columns; ++k) {
    const int column = static_cast<int>(threadIdx.x) + k * whole_tile_threads;
    if (column < features) sums.of_addend[k] = sums.of_addend[k] + rows.x[r * stride + column];
  }
}
template <bool sums_addend, int columns>
STW_DEVICE void store_columns(const ColumnSums<columns>& mine, int64_t tile, int64_t tiles, int features,
                              float* sums, float* addend_sums) {
  STW_UNROLL
  for (int k = 0; k < columns; ++k) {
    const int column = static_cast<int>(threadIdx.x) + k * whole_tile_threads;
    if (column >= features) continue;
    sums[tile * features + column] = mine.dw[k];
    sums[(tiles + tile) * features + column] = mine.db[k];
    if (sums_addend) addend_sums[tile * features + column] = mine.of_addend[k];
  }
}

// Stores dx of a team's row, whose x and dy are staged. `keeps_addend`: the addend overwrites x, which no
// other thread reads by now.
template <class Stored, bool has_addend, bool keeps_addend>
STW_DEVICE void store_row_gradient(const NormArgs& args, const NormTeams& teams, const NormTeam& team,
                                   bool live, bool vectors, int64_t base, const WholeRows& rows, float* x,
                                   const float* dy, const RowStatistics& of_row, const float* means) {
  const DType dx_dtype = Stored::of(args.dx.dtype), addend_dtype = Stored::of(args.addend.dtype);
  const F16 mean = splat(of_row.mean), rstd = splat(of_row.rstd);
  const F16 mean_g = splat(means[0]), mean_gh = splat(means[1]);
  void* const dx = element(args.dx.data, dx_dtype, base);
  const void* const addend = has_addend ? element(args.addend.data, addend_dtype, base) : nullptr;
  for_team_groups<2>(
      teams, team, live ? static_cast<int>(args.features) : 0, vectors,
      [&](int at, auto n) { return has_addend ? load_group(addend, addend_dtype, at, n) : zero(); },
      [&](const F16& added, int at, auto n) {
        const F16 h = mul(sub(load(x + at, FullGroup{}), mean), rstd),
                  g = mul(load(dy + at, FullGroup{}), load(rows.factors + at, FullGroup{}));
        const F16 inner = sub(sub(g, mean_g), mul(h, mean_gh));
        store_group(dx, dx_dtype, at, has_addend ? fma(inner, rstd, added) : mul(inner, rstd), n);
        if (keeps_addend) store_shared(x + at, added);
      });
}

// `addend_sums`: (tiles, features), sums of the addend's tiles. Blocks from number `blocks` on sum the
// biases' tiles.
template <class Stored, int columns, bool sums_addend>
static __global__ void __launch_bounds__(whole_tile_threads, (sums_addend && columns == most_columns) ? 4 : 5)
    norm_whole_tiles_kernel(NormArgs args, NormTeams teams, TokenTiles tiles, bool vectors, float* sums,
                            float* addend_sums, int blocks, STW_CONSTANT Biases biases) {
  STW_DYNAMIC_SHARED(float, shared);
  STW_SHARED(RowStatistics, statistics, most_rows_of_block);
  STW_SHARED(float, means, 2 * most_rows_of_block);  // The means of g and of g·h.
  const NormTeam team = place_in(teams);
  const int features = static_cast<int>(args.features), thread = static_cast<int>(threadIdx.x);
  const bool wanted = args.dx.data != nullptr;
  const DType x_dtype = Stored::of(args.x.dtype), dy_dtype = Stored::of(args.y.dtype);
  if (static_cast<int>(blockIdx.x) >= blocks) {
    constexpr int quads = whole_tile_threads / quad;
    const int64_t block = static_cast<int64_t>(blockIdx.x) - blocks,
                  of_block = static_cast<int64_t>(gridDim.x) - blocks;
    return sum_bias_tiles(biases, Stored::of(biases.dtype), block * quads + thread / quad, of_block * quads);
  }
  const WholeRows rows = whole_rows<Stored>(args, teams, shared, vectors);
  // Where the team's row begins in rows.x and rows.dy. With two pointers instead, nvcc 13 spills 8 bytes for
  // sm_90.
  const int offset = team.row * teams.stride;
  for (int64_t tile = blockIdx.x; tile < tiles.count(); tile += blocks) {
    const int64_t end = tiles.end_row(tile);
    ColumnSums<columns> mine_of_tile;
    STW_UNROLL
    for (int k = 0; k < columns; ++k)
      mine_of_tile.dw[k] = mine_of_tile.db[k] = mine_of_tile.of_addend[k] = 0.0f;
    for (int64_t first = tiles.first_row(tile); first < end; first += teams.rows) {
      const int64_t row = first + team.row, base = row * args.features;
      const bool live = row < end, sums_row = live && team.sums();
      const auto fetch = [&](int64_t, int count) {
        const void* const x = element(args.x.data, x_dtype, base);
        const void* const dy = element(args.y.data, dy_dtype, base);
        struct Operands {
          F16 x, dy;
        };
        for_team_groups<2>(
            teams, team, live ? count : 0, vectors,
            [&](int at, auto n) {
              return Operands{load_group(x, x_dtype, at, n), load_group(dy, dy_dtype, at, n)};
            },
            [&](const Operands& o, int at, auto) {
              store_shared(rows.x + offset + at, o.x);
              store_shared(rows.dy + offset + at, o.dy);
            });
      };
      const RowStatistics mine = team_statistics(args, teams, team, live, rows.x + offset, fetch);
      if (wanted && sums_row) store_means(args, team, rows, rows.x + offset, rows.dy + offset, mine, means);
      if (live && team.thread == 0) statistics[team.row] = mine;
      __syncthreads();
      const int count = static_cast<int>(min(static_cast<int64_t>(teams.rows), end - first));
      add_rows(mine_of_tile, features, teams.stride, rows, statistics, count);
      if (!wanted) continue;
      if (sums_addend) __syncthreads();  // All threads have read their columns of x.
      const auto store = [&](auto has_addend) {
        store_row_gradient<Stored, has_addend.value, sums_addend>(args, teams, team, live, vectors, base,
                                                                  rows, rows.x + offset, rows.dy + offset,
                                                                  statistics[team.row], means + 2 * team.row);
      };
      if (args.addend.data != nullptr) store(BoolConstant<true>{});
      else store(BoolConstant<false>{});
      if (!sums_addend) continue;
      __syncthreads();
      add_addend(mine_of_tile, features, teams.stride, rows, count);
    }
    store_columns<sums_addend>(mine_of_tile, tile, tiles.count(), features, sums, addend_sums);
  }
}

// The teams of a block that takes whole tiles; zero rows if there are too many features.
static NormTeams tile_teams(int64_t features) {
  NormTeams t = {0, 0, static_cast<int>(round_up(features, 16)), 0};
  t.stride = (t.piece + 31) / 32 * 32 + 16;  // Rows that a warp reads together begin in different banks.
  const auto floats = [&](int rows) { return int64_t{2 * rows + 1} * t.stride; };
  if (features > most_columns * whole_tile_threads || floats(1) > most_staged_floats) return t;
  t.rows = 1;
  while (t.rows < most_rows_of_block && floats(2 * t.rows) <= most_staged_floats) t.rows *= 2;
  t.threads = whole_tile_threads / t.rows;
  return t;
}

// Small blocks, so that the tiles of few rows reach all SMs.
static constexpr int norm_tile_threads = 64;

template <class Stored>
static __global__ void __launch_bounds__(norm_tile_threads, 6)
    norm_tiles_kernel(NormArgs args, TokenTiles tiles, bool vectors, const RowStatistics* kept, float* sums) {
  const int64_t features = args.features, groups = ceil_div(features, 16);
  const DType x_dtype = Stored::of(args.x.dtype), dy_dtype = Stored::of(args.y.dtype);
  for_tasks_of_grid(tiles.count() * groups, [&](int64_t task) {
    const int64_t tile = task / groups, i = task % groups * 16,
                  n = min(static_cast<int64_t>(16), features - i);
    const int64_t first = tiles.first_row(tile);
    const int rows = static_cast<int>(tiles.end_row(tile) - first);
    const void* const x = element(args.x.data, x_dtype, first * features + i);
    const void* const dy = element(args.y.data, dy_dtype, first * features + i);
    F16 dw = zero(), db = zero();
    const auto add_rows = [&](auto ahead, auto columns) {
      struct Row {
        F16 x, dy;
        RowStatistics statistics;
      };
      for_each_ahead<ahead.value>(
          rows,
          [&](int row) {
            return Row{load_group(x, x_dtype, row * features, columns),
                       load_group(dy, dy_dtype, row * features, columns), kept[first + row]};
          },
          [&](const Row& row) {
            dw = fma(row.dy, mul(sub(row.x, splat(row.statistics.mean)), splat(row.statistics.rstd)), dw);
            db = add(db, row.dy);
          });
    };
    if (vectors && n == 16) add_rows(Ahead<4>{}, FullGroup{});
    else add_rows(Ahead<1>{}, n);
    store_group(sums, DType::f32, tile * features + i, dw, n);
    store_group(sums, DType::f32, (tiles.count() + tile) * features + i, db, n);
  });
}

void norm_gradient(const Launch& l, const NormArgs& args) {
  STW_ASSERT_WORKSPACE(norm_gradient);
  const TokenTiles tiles{args.rows, args.rows_per_sample};
  auto* kept = static_cast<RowStatistics*>(l.workspace);
  float* sums =
      reinterpret_cast<float*>(static_cast<char*>(l.workspace) +
                               round_up(args.rows * static_cast<int64_t>(sizeof(RowStatistics)), 16));
  const DType dtype = args.x.dtype, dx_dtype = args.dx.data == nullptr ? dtype : args.dx.dtype,
              addend_dtype = args.addend.data == nullptr ? dtype : args.addend.dtype;
  const bool operands =
      vectors_at(args.x.data, dtype, args.features) && vectors_at(args.y.data, args.y.dtype, args.features);
  const bool vectors = operands && vectors_at(args.weight, args.weight_dtype) &&
                       vectors_at(args.dx.data, dx_dtype, args.features) &&
                       vectors_at(args.addend.data, addend_dtype, args.features);
  const bool sums_rows = args.weight_gradient != nullptr || args.bias_gradient != nullptr;
  const NormTeams whole = tile_teams(args.features);
  const bool in_tiles = sums_rows && whole.rows > 0 && tiles.count() >= multiprocessors_of_device();
  Folds folds = {args.accumulate, tiles, 0, {}};
  folds.add(sums, args.features, args.weight_gradient);
  folds.add(sums + tiles.count() * args.features, args.features, args.bias_gradient);
  Biases biases = {0, dtype, tiles, 0, {}};
  float *addend_sums = nullptr, *next = sums + 2 * tiles.count() * args.features;
  for (const LinearArgs* one = args.biases; one != nullptr; one = one->further)
    for_parts(*one, [&](const LinearPart& p, int64_t column) {
      if (p.bias_gradient == nullptr) return;
      if (one->tile_sums != nullptr) return folds.add(one->tile_sums, p.features, p.bias_gradient);
      if (in_tiles && one->y.data == args.addend.data) {
        assert(one->parts == 1 && p.features == args.features && one->y_stride == args.features &&
               one->y.dtype == args.addend.dtype && args.dx.data != nullptr);
        addend_sums = next;
      } else {
        biases.add(*one, column, p.features, next);
      }
      folds.add(next, p.features, p.bias_gradient);
      next += tiles.count() * p.features;
    });
  STW_ASSERT_FITS(next);
  assert(args.biases == nullptr || sums_rows);
  if (in_tiles) {
    for_dtypes(
        {dtype, args.y.dtype, dx_dtype, addend_dtype, args.weight_dtype, biases.dtype}, [&](auto stored) {
          constexpr int few = most_columns / 2;
          using Stored = decltype(stored);
          const int blocks = blocks_for(tiles.count(), 1);
          const auto run = [&](auto sums_addend) {
            constexpr bool adds = sums_addend.value;
            launch(
                l,
                args.features <= few * whole_tile_threads
                    ? norm_whole_tiles_kernel<Stored, few, adds>
                    : norm_whole_tiles_kernel<Stored, most_columns, adds>,
                blocks + (biases.count > 0 ? blocks_for(biases.tasks, whole_tile_threads / quad) : 0),
                whole_tile_threads,
                static_cast<size_t>(2 * whole.rows + 1) * static_cast<size_t>(whole.stride) * sizeof(float),
                args, whole, tiles, vectors, sums, addend_sums, blocks, biases);
          };
          if (addend_sums != nullptr) run(BoolConstant<true>{});
          else run(BoolConstant<false>{});
        });
  } else {
    launch_bias_tiles(l, biases);
    const NormTeams teams = norm_teams(args.rows, args.features, 2);
    for_dtypes({dtype, args.y.dtype, dx_dtype, addend_dtype, args.weight_dtype}, [&](auto stored) {
      launch(l, norm_rows_kernel<decltype(stored)>, teams.blocks(args.rows), teams.block(), teams.bytes(2),
             args, teams, vectors, kept);
    });
    if (!sums_rows) return;
    for_dtypes({dtype, args.y.dtype}, [&](auto stored) {
      launch(l, norm_tiles_kernel<decltype(stored)>,
             blocks_for(tiles.count() * ceil_div(args.features, 16), norm_tile_threads / quad),
             norm_tile_threads, 0, args, tiles, operands, kept, sums);
    });
  }
  launch_folds(l, folds);
}

}  // namespace stw::kernels::cuda
