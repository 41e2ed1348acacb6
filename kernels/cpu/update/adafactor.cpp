// Adafactor (adafactor_step.h) for matrices and vectors.
//
// Three passes over the gradient, bound by memory traffic: moments, rms(u), update. Workspace: 4 bytes a
// line, and 1/64 of the matrix for the blocks.
#include "kernels/common/adafactor_step.h"
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/update/parameter.h"

namespace stw::kernels::STW_ISA {

namespace {

struct Moments {
  const UpdateArgs& args;
  const AdafactorLayout& layout;
  AdafactorScalars scalars;
};

// Updates the states of a block's rows. Computes the sum of p² of each row, and the sum of g² of each column
// over the block's rows.
void square_block(const Moments& m, int64_t block, float* sums, float* blocks) {
  const UpdateArgs& args = m.args;
  const int64_t columns = m.layout.width, last = min(m.layout.lines, (block + 1) * adafactor_block);
  float* const column_sums = blocks + block * columns;
  memset(column_sums, 0, (size_t)columns * sizeof(float));
  for (int64_t row = block * adafactor_block; row < last; ++row) {
    F16 squares = zero(), sizes = zero();
    for_groups(0, columns, [&](int64_t j, int64_t n) {
      const F16 g = scaled_gradient(args, m.scalars.coefficient, row * columns + j, n);
      const F16 p = load_parameter(args, row * columns + j, n);
      squares = fma(g, g, squares);
      sizes = fma(p, p, sizes);
      store_group(column_sums, DType::f32, j, fma(g, g, load_group(column_sums, DType::f32, j, n)), n);
    });
    args.first[row] = mixed_row(m.scalars, args.first[row], fold(squares), columns);
    sums[row] = fold(sizes);
  }
}

// States of columns [begin, end).
void mix_columns(const Moments& m, int64_t begin, int64_t end, const float* blocks) {
  const F16 rows = splat((float)m.layout.lines);
  for_groups(begin, end, [&](int64_t at, int64_t n) {
    F16 sum = zero();
    for (int64_t block = 0; block < m.layout.blocks; ++block)
      sum = add(sum, load_group(blocks, DType::f32, block * m.layout.width + at, n));
    const F16 old = load_group(m.args.second, DType::f32, at, n);
    store_group(m.args.second, DType::f32, at, mixed_squares(m.scalars, old, div(sum, rows)), n);
  });
}

// The state of a line of a vector, and its sum of p².
float square_line(const Moments& m, int64_t begin, int64_t end) {
  F16 sizes = zero();
  for_groups(begin, end, [&](int64_t at, int64_t n) {
    const F16 g = scaled_gradient(m.args, m.scalars.coefficient, at, n), p = load_parameter(m.args, at, n);
    const F16 old = load_group(m.args.second, DType::f32, at, n);
    store_group(m.args.second, DType::f32, at, mixed_squares(m.scalars, old, mul(g, g)), n);
    sizes = fma(p, p, sizes);
  });
  return fold(sizes);
}

double rms(const float* sums, int64_t lines, int64_t count) {
  double total = 0;
  for (int64_t i = 0; i < lines; ++i) total += (double)sums[i];
  return root_mean(total, count);
}

// Calls body(at, n, u) for the groups of a line.
template <class Body>
STW_INLINE void for_updates(const Moments& m, int64_t line, float mean, const Body& body) {
  const UpdateArgs& args = m.args;
  const bool matrix = args.columns > 0;
  const int64_t begin = line * m.layout.width, end = min(args.count, begin + m.layout.width);
  const F16 row = splat(matrix ? args.first[line] / mean : 1.0f);
  for_groups(begin, end, [&](int64_t at, int64_t n) {
    const F16 second = load_group(args.second, DType::f32, matrix ? at - begin : at, n);
    body(at, n, adafactor_update(row, second, scaled_gradient(args, m.scalars.coefficient, at, n)));
  });
}

}  // namespace

void adafactor(const Launch& launch, const UpdateArgs& args) {
  STW_ASSERT_WORKSPACE(adafactor);
  if (args.state->skip != 0) return;
  const AdafactorLayout layout = adafactor_layout(args);
  const Moments m = {args, layout, adafactor_scalars(args)};
  assert((uint64_t)layout.bytes <= launch.workspace_bytes);
  float* const sums = (float*)launch.workspace;
  float* const blocks = sums + layout.lines;

  float mean = 1.0f;
  if (args.columns > 0) {
    for_rows(launch, layout.blocks, adafactor_block * layout.width, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) square_block(m, block, sums, blocks);
    });
    for_rows(launch, ceil_div(layout.width, 16), 16 * layout.blocks, [&](int64_t begin, int64_t end) {
      mix_columns(m, 16 * begin, min(16 * end, layout.width), blocks);
    });
    double total = 0;
    for (int64_t row = 0; row < layout.lines; ++row) total += (double)args.first[row];
    mean = mean_of_rows(total, layout.lines);
  } else {
    for_rows(launch, layout.lines, layout.width, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line)
        sums[line] = square_line(m, line * layout.width, min(args.count, (line + 1) * layout.width));
    });
  }
  const double alpha = adafactor_alpha(args, rms(sums, layout.lines, args.count));

  for_rows(launch, layout.lines, layout.width, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      F16 squares = zero();
      for_updates(m, line, mean, [&](int64_t, int64_t, F16 u) { squares = fma(u, u, squares); });
      sums[line] = fold(squares);
    }
  });
  const double update = rms(sums, layout.lines, args.count);

  const F16 kept = splat(kept_share(args)), step = splat(adafactor_step(alpha, update));
  for_rows(launch, layout.lines, layout.width, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line)
      for_updates(m, line, mean, [&](int64_t at, int64_t n, F16 u) {
        store_parameter(args, at, fma(step, u, mul(load_parameter(args, at, n), kept)), n);
      });
  });
}

}  // namespace stw::kernels::STW_ISA
