// Adafactor (adafactor_step.h) for matrices and vectors.
//
// Kernels, in order:
//   1. The second moments and the sums of p² of every line. A line is a row of a matrix, or 4096 elements
//      of a vector. A block stages a line in shared memory, and a few of its threads add it up in order.
//   2. For a matrix, the second moments of columns. A quad sums 16 columns of a block of rows.
//   3. alpha and mean(R), by one block.
//   4. The sums of u² of every line.
//   5. The step, by one block.
//   6. The update.
// Bound by memory: the gradient is read three times, four times for a matrix.
//
// Workspace: the scalars, a float for each line, a row of floats for each block of rows.
#include "kernels/common/adafactor_step.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/serial_sum.h"
#include "kernels/cuda/update/parameter.h"

namespace stw::kernels::cuda {

struct AdafactorFound {
  double alpha;
  float mean, step;
};  // The scalars of this step. They lie before the sums.

// Threads of a line: a quad for each of its groups, limited by the size of a block.
static int line_threads(int64_t width) {
  const int64_t threads = round_up(ceil_div(width, 16) * quad, 32);
  return static_cast<int>(threads < block_threads ? threads : block_threads);
}

// For the rows of a matrix: computes the states and the sums of p².
template <Storage storage, DType gradient>
static __global__ void __launch_bounds__(block_threads, 4)
    square_rows_kernel(UpdateArgs args, AdafactorLayout layout, float* sums) {
  args.gradient_dtype = gradient;
  if (args.state->skip != 0) return;
  const AdafactorScalars scalars = adafactor_scalars(args);
  for (int64_t row = blockIdx.x; row < layout.lines; row += gridDim.x) {
    const Squares2 sum = sum_squares2(layout.width, [&](int64_t i, int64_t n) {
      const int64_t at = row * layout.width + i;
      return F16Pair{scaled_gradient(args, scalars.coefficient, at, n), load_parameter<storage>(args, at, n)};
    });
    if (threadIdx.x != 0) continue;
    args.first[row] = mixed_row(scalars, args.first[row], sum.a, layout.width);
    sums[row] = sum.b;
  }
}

// For the columns of each block of rows: computes Σ g².
template <DType gradient>
static __global__ void __launch_bounds__(block_threads)
    square_columns_kernel(UpdateArgs args, AdafactorLayout layout, float* blocks) {
  args.gradient_dtype = gradient;
  if (args.state->skip != 0) return;
  constexpr int fetched = 4;
  const F16 coefficient = coefficient_of(args);
  const int64_t groups = ceil_div(layout.width, 16);
  for_tasks_of_grid(layout.blocks * groups, [&](int64_t task) {
    const int64_t block = task / groups, j = task % groups * 16,
                  n = min(static_cast<int64_t>(16), layout.width - j);
    const int64_t end = min(layout.lines, (block + 1) * adafactor_block);
    F16 sum = zero();
    int64_t row = block * adafactor_block;
    for (; row + fetched <= end; row += fetched) {
      F16 g[fetched];
      STW_UNROLL
      for (int k = 0; k < fetched; ++k)
        g[k] = scaled_gradient(args, coefficient, (row + k) * layout.width + j, n);
      STW_UNROLL
      for (int k = 0; k < fetched; ++k) sum = fma(g[k], g[k], sum);
    }
    for (; row < end; ++row) {
      const F16 g = scaled_gradient(args, coefficient, row * layout.width + j, n);
      sum = fma(g, g, sum);
    }
    store_group(blocks, DType::f32, block * layout.width + j, sum, n);
  });
}
static __global__ void __launch_bounds__(block_threads)
    mix_columns_kernel(UpdateArgs args, AdafactorLayout layout, const float* blocks) {
  if (args.state->skip != 0) return;
  const AdafactorScalars scalars = adafactor_scalars(args);
  const F16 rows = splat(static_cast<float>(layout.lines));
  for_groups_of_grid(layout.width, [&](int64_t at, int64_t n) {
    F16 sum = zero();
    for (int64_t block = 0; block < layout.blocks; ++block)
      sum = add(sum, load_group(blocks, DType::f32, block * layout.width + at, n));
    const F16 old = load_group(args.second, DType::f32, at, n);
    store_group(args.second, DType::f32, at, mixed_squares(scalars, old, div(sum, rows)), n);
  });
}

// For the lines of a vector: computes the states and the sums of p².
template <Storage storage, DType gradient>
static __global__ void __launch_bounds__(block_threads)
    square_lines_kernel(UpdateArgs args, AdafactorLayout layout, float* sums) {
  args.gradient_dtype = gradient;
  if (args.state->skip != 0) return;
  const AdafactorScalars scalars = adafactor_scalars(args);
  for (int64_t line = blockIdx.x; line < layout.lines; line += gridDim.x) {
    const int64_t begin = line * layout.width;
    const float sum = sum_squares(min(layout.width, args.count - begin), [&](int64_t i, int64_t n) {
      const int64_t at = begin + i;
      const F16 g = scaled_gradient(args, scalars.coefficient, at, n),
                old = load_group(args.second, DType::f32, at, n);
      store_group(args.second, DType::f32, at, mixed_squares(scalars, old, mul(g, g)), n);
      return load_parameter<storage>(args, at, n);
    });
    if (threadIdx.x == 0) sums[line] = sum;
  }
}

static __global__ void __launch_bounds__(block_threads)
    adafactor_alpha_kernel(UpdateArgs args, AdafactorLayout layout, const float* sums,
                           AdafactorFound* found) {
  if (args.state->skip != 0) return;
  const bool matrix = args.columns > 0;
  const double rows = serial_sum_of_floats(args.first, matrix ? layout.lines : 0),
               sizes = serial_sum_of_floats(sums, layout.lines);
  if (threadIdx.x != 0) return;
  found->mean = matrix ? mean_of_rows(rows, layout.lines) : 1.0f;
  found->alpha = adafactor_alpha(args, root_mean(sizes, args.count));
}

// u of a group of a line.
STW_DEVICE F16 update_of(const UpdateArgs& args, F16 coefficient, float mean, int64_t line, int64_t begin,
                         int64_t i, int64_t n) {
  const bool matrix = args.columns > 0;
  const F16 row = splat(matrix ? args.first[line] / mean : 1.0f);
  const F16 second = load_group(args.second, DType::f32, matrix ? i : begin + i, n);
  return adafactor_update(row, second, scaled_gradient(args, coefficient, begin + i, n));
}

template <DType gradient>
static __global__ void __launch_bounds__(block_threads)
    square_updates_kernel(UpdateArgs args, AdafactorLayout layout, const AdafactorFound* found, float* sums) {
  args.gradient_dtype = gradient;
  if (args.state->skip != 0) return;
  const F16 coefficient = coefficient_of(args);
  const float mean = found->mean;
  for (int64_t line = blockIdx.x; line < layout.lines; line += gridDim.x) {
    const int64_t begin = line * layout.width;
    const float sum = sum_squares(min(layout.width, args.count - begin), [&](int64_t i, int64_t n) {
      return update_of(args, coefficient, mean, line, begin, i, n);
    });
    if (threadIdx.x == 0) sums[line] = sum;
  }
}

static __global__ void __launch_bounds__(block_threads)
    adafactor_step_kernel(UpdateArgs args, AdafactorLayout layout, const float* sums, AdafactorFound* found) {
  if (args.state->skip != 0) return;
  const double squares = serial_sum_of_floats(sums, layout.lines);
  if (threadIdx.x == 0) found->step = adafactor_step(found->alpha, root_mean(squares, args.count));
}

template <Storage storage, DType gradient>
static __global__ void __launch_bounds__(block_threads)
    adafactor_kernel(UpdateArgs args, AdafactorLayout layout, const AdafactorFound* found) {
  args.gradient_dtype = gradient;
  if (args.state->skip != 0) return;
  const F16 coefficient = coefficient_of(args), kept = splat(kept_share(args)), step = splat(found->step);
  const float mean = found->mean;
  const int64_t groups = ceil_div(layout.width, 16);
  for_tasks_of_grid(layout.lines * groups, [&](int64_t task) {
    const int64_t line = task / groups, begin = line * layout.width, i = task % groups * 16, at = begin + i;
    const int64_t n = min(static_cast<int64_t>(16), min(begin + layout.width, args.count) - at);
    if (n <= 0) return;  // The last line of a vector may be shorter.
    const F16 p = mul(load_parameter<storage>(args, at, n), kept);
    store_parameter<storage>(args, at, fma(step, update_of(args, coefficient, mean, line, begin, i, n), p),
                             n);
  });
}

void adafactor(const Launch& l, const UpdateArgs& args) {
  STW_ASSERT_WORKSPACE(adafactor);
  const AdafactorLayout layout = adafactor_layout(args);
  assert(sizeof(AdafactorFound) + static_cast<uint64_t>(layout.bytes) <= l.workspace_bytes);
  auto* const found = static_cast<AdafactorFound*>(l.workspace);
  auto* const sums = reinterpret_cast<float*>(found + 1);
  float* const blocks = sums + layout.lines;
  const int threads = line_threads(layout.width < args.count ? layout.width : args.count),
            lines = blocks_for(layout.lines, 1);
  for_update(args, [&](auto stored, auto gradient) {
    if (args.columns > 0) {
      launch(l, square_rows_kernel<stored.storage, gradient.dtype>, lines, threads, 0, args, layout, sums);
      launch(l, square_columns_kernel<gradient.dtype>,
             blocks_for_elements(layout.blocks * round_up(layout.width, 16)), block_threads, 0, args, layout,
             blocks);
      launch(l, mix_columns_kernel, blocks_for_elements(layout.width), block_threads, 0, args, layout,
             blocks);
    } else {
      launch(l, square_lines_kernel<stored.storage, gradient.dtype>, lines, threads, 0, args, layout, sums);
    }
    launch(l, adafactor_alpha_kernel, 1, block_threads, 0, args, layout, sums, found);
    launch(l, square_updates_kernel<gradient.dtype>, lines, threads, 0, args, layout, found, sums);
    launch(l, adafactor_step_kernel, 1, block_threads, 0, args, layout, sums, found);
    launch(l, adafactor_kernel<stored.storage, gradient.dtype>,
           blocks_for_elements(layout.lines * round_up(layout.width, 16)), block_threads, 0, args, layout,
           found);
  });
}

}  // namespace stw::kernels::cuda
