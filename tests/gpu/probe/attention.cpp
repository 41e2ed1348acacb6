// Attention with heads of 64 and 128, forward and backward, by each kind of kernels. Compares with double
// precision, and checks that the bits are the same in two runs and for any number of samples.
#include <algorithm>
#include <cmath>
#include <thread>

#include "src/cuda/cudnn_attention.h"
#include "tests/gpu/probe/expectations.h"
#include "tests/gpu/probe/parts.h"

namespace stw::probe {

namespace {

struct Shape {
  int64_t samples, rows;
  int heads, kv_heads, head_dim;
  int64_t width() const { return static_cast<int64_t>(heads + 2 * kv_heads) * head_dim; }
  int64_t out_width() const { return static_cast<int64_t>(heads) * head_dim; }
  uint64_t qkv() const { return static_cast<uint64_t>(samples * rows * width()); }
  uint64_t out() const { return static_cast<uint64_t>(samples * rows * out_width()); }
  double scale() const { return 1 / std::sqrt(static_cast<double>(head_dim)); }
  double flops() const {
    return 2.0 * static_cast<double>(samples * heads * rows) * static_cast<double>(rows * head_dim);
  }  // causal, forward
  std::string text() const {
    return text_of("%lld x %lld, %d/%d heads of %d", static_cast<long long>(samples),
                   static_cast<long long>(rows), heads, kv_heads, head_dim);
  }
};

struct Way {
  const char* name;
  ProductKernels products;
};

struct Outputs {
  Memory out, lse, dqkv;
  explicit Outputs(const Shape& s)
      : out(2 * s.out()), lse(4 * static_cast<uint64_t>(s.samples * s.heads * s.rows)), dqkv(2 * s.qkv()) {}
  void poison() { out.poison(), lse.poison(), dqkv.poison(); }
};

kernels::AttentionArgs args_of(const Shape& s, const Noise& noise, const Outputs& outputs,
                               ProductKernels products) {
  kernels::AttentionArgs a = {};
  a.samples = s.samples, a.rows_per_sample = s.rows;
  a.query_heads = s.heads, a.kv_heads = s.kv_heads, a.head_dim = s.head_dim;
  a.scale = static_cast<float>(s.scale()), a.causal = true, a.products = products;
  a.qkv = {noise.device(0, s.qkv()), DType::bf16}, a.dout = {noise.device(s.qkv(), s.out()), DType::bf16};
  a.out = {outputs.out.data(), DType::bf16}, a.lse = outputs.lse.as<float>(),
  a.dqkv = {outputs.dqkv.data(), DType::bf16};
  return a;
}

// All query heads of the last key head of the last sample, in double precision: rows × head_dim each.
struct Reference {
  std::vector<std::vector<double>> out, dq;
  std::vector<double> dk, dv;
};
struct OfHead {
  std::vector<double> out, dq, dk, dv;
};
OfHead reference_of_head(const Shape& s, const Noise& noise, int head, int kv_head) {
  const auto dim = static_cast<size_t>(s.head_dim), rows = static_cast<size_t>(s.rows);
  const auto piece = [&](uint64_t begin, int64_t width, int64_t column) {  // as doubles, rows × head_dim
    std::vector<double> values(rows * dim);
    for (size_t r = 0; r < rows; ++r)
      for (size_t i = 0; i < dim; ++i)
        values[r * dim + i] = float_of(
            *noise.host(begin + r * static_cast<uint64_t>(width) + static_cast<uint64_t>(column) + i));
    return values;
  };
  const uint64_t sample = static_cast<uint64_t>((s.samples - 1) * s.rows);
  const uint64_t at = sample * static_cast<uint64_t>(s.width()),
                 dout_at = s.qkv() + sample * static_cast<uint64_t>(s.out_width());
  const auto q = piece(at, s.width(), head * s.head_dim),
             k = piece(at, s.width(), (s.heads + kv_head) * s.head_dim);
  const auto v = piece(at, s.width(), (s.heads + s.kv_heads + kv_head) * s.head_dim),
             dout = piece(dout_at, s.out_width(), head * s.head_dim);
  OfHead r{std::vector<double>(rows * dim), std::vector<double>(rows * dim), std::vector<double>(rows * dim),
           std::vector<double>(rows * dim)};
  std::vector<double> p(rows), dp(rows);
  const auto dot = [&](const double* a, const double* b) {
    double sum = 0;
    for (size_t i = 0; i < dim; ++i) sum += a[i] * b[i];
    return sum;
  };
  for (size_t row = 0; row < rows; ++row) {
    double largest = -INFINITY, sum = 0, dots = 0;
    for (size_t key = 0; key <= row; ++key)
      largest = std::max(largest, p[key] = s.scale() * dot(&q[row * dim], &k[key * dim]));
    for (size_t key = 0; key <= row; ++key) sum += p[key] = std::exp(p[key] - largest);
    for (size_t key = 0; key <= row; ++key) {
      p[key] /= sum;
      dp[key] = dot(&dout[row * dim], &v[key * dim]);
      dots += p[key] * dp[key];
    }
    for (size_t key = 0; key <= row; ++key) {
      const double ds = p[key] * (dp[key] - dots) * s.scale();
      for (size_t i = 0; i < dim; ++i) {
        r.out[row * dim + i] += p[key] * v[key * dim + i];
        r.dq[row * dim + i] += ds * k[key * dim + i];
        r.dk[key * dim + i] += ds * q[row * dim + i];
        r.dv[key * dim + i] += p[key] * dout[row * dim + i];
      }
    }
  }
  return r;
}
Reference reference(const Shape& s, const Noise& noise, int kv_head) {
  const int group = s.heads / s.kv_heads;
  std::vector<OfHead> heads(static_cast<size_t>(group));
  std::vector<std::thread> threads;
  for (int i = 0; i < group; ++i)
    threads.emplace_back([&, i] { heads[i] = reference_of_head(s, noise, kv_head * group + i, kv_head); });
  for (std::thread& thread : threads) thread.join();
  Reference r;
  r.dk.resize(heads[0].dk.size()), r.dv.resize(heads[0].dv.size());
  for (OfHead& head : heads) {
    for (size_t i = 0; i < head.dk.size(); ++i) r.dk[i] += head.dk[i], r.dv[i] += head.dv[i];
    r.out.push_back(std::move(head.out)), r.dq.push_back(std::move(head.dq));
  }
  return r;
}

// Error relative to the largest value. `values` are whole rows.
double error_of(const std::vector<uint16_t>& values, const std::vector<double>& expected, const Shape& s,
                int64_t width, int64_t column) {
  Error error;
  const int64_t first = (s.samples - 1) * s.rows;
  for (int64_t row = 0; row < s.rows; ++row)
    for (int64_t i = 0; i < s.head_dim; ++i)
      error.add(float_of(values[(first + row) * width + column + i]), expected[row * s.head_dim + i],
                INFINITY);
  return error.relative();
}

// Limits of the kernel tests. They allow for the rounding of P and dS to 16 bits.
constexpr double forward_limit = 1e-2, gradient_limit = 2e-2;

void check_shape(Report& report, const Options& options, const Peaks& peaks, Calls& calls, const Shape& s,
                 const std::vector<Way>& ways, bool is_gpt2) {
  const Noise noise(s.qkv() + s.out());
  const int kv_head = s.kv_heads - 1, group = s.heads / s.kv_heads;
  const Reference expected = reference(s, noise, kv_head);
  for (const Way& way : ways) {
    Outputs outputs(s);
    const auto run = [&](const kernels::AttentionArgs& a) {
      outputs.poison();
      calls.run(calls.table.attention, a, kernels::cuda::attention_workspace(a), "attention");
      calls.run(calls.table.attention_gradient, a, kernels::cuda::attention_gradient_workspace(a),
                "the gradient of attention");
    };
    const kernels::AttentionArgs a = args_of(s, noise, outputs, way.products);
    report.uses_warpgroups(way.products == ProductKernels::warpgroup);
    run(a);
    const auto out = outputs.out.values<uint16_t>(s.out()), dqkv = outputs.dqkv.values<uint16_t>(s.qkv());
    double forward = 0, gradient = 0;
    for (int i = 0; i < group; ++i) {
      const int64_t column = static_cast<int64_t>(kv_head * group + i) * s.head_dim;
      forward = std::max(forward, error_of(out, expected.out[i], s, s.out_width(), column));
      gradient = std::max(gradient, error_of(dqkv, expected.dq[i], s, s.width(), column));
    }
    gradient = std::max(gradient, error_of(dqkv, expected.dk, s, s.width(),
                                           static_cast<int64_t>(s.heads + kv_head) * s.head_dim));
    gradient =
        std::max(gradient, error_of(dqkv, expected.dv, s, s.width(),
                                    static_cast<int64_t>(s.heads + s.kv_heads + kv_head) * s.head_dim));
    std::string wrong;
    if (!(forward <= forward_limit)) wrong += "; THE OUTPUT IS WRONG";
    if (!(gradient <= gradient_limit)) wrong += "; THE GRADIENT IS WRONG";
    if (poisoned(out) + poisoned(dqkv) > 0) wrong += "; not all is written";
    if (!outputs.out.is_guard_whole() || !outputs.lse.is_guard_whole() || !outputs.dqkv.is_guard_whole())
      wrong += "; writes past its output";
    run(a);
    if (outputs.out.values<uint16_t>(s.out()) != out || outputs.dqkv.values<uint16_t>(s.qkv()) != dqkv)
      wrong += "; other bits the second time";
    kernels::AttentionArgs one = a;  // the last sample alone; its lse are already in place
    one.samples = 1;
    one.qkv.data =
        static_cast<const uint16_t*>(a.qkv.data) + (s.qkv() - s.qkv() / static_cast<uint64_t>(s.samples));
    one.dout.data =
        static_cast<const uint16_t*>(a.dout.data) + (s.out() - s.out() / static_cast<uint64_t>(s.samples));
    run(one);
    const uint64_t out_of_one = s.out() / static_cast<uint64_t>(s.samples),
                   qkv_of_one = s.qkv() / static_cast<uint64_t>(s.samples);
    const auto one_out = outputs.out.values<uint16_t>(out_of_one),
               one_dqkv = outputs.dqkv.values<uint16_t>(qkv_of_one);
    if (!std::equal(one_out.begin(), one_out.end(), out.end() - static_cast<int64_t>(out_of_one)) ||
        !std::equal(one_dqkv.begin(), one_dqkv.end(), dqkv.end() - static_cast<int64_t>(qkv_of_one)))
      wrong += "; a sample alone has other bits";
    run(a);
    const double ahead = calls.seconds(calls.table.attention, a, kernels::cuda::attention_workspace(a),
                                       "attention", options.small);
    const double back =
        calls.seconds(calls.table.attention_gradient, a, kernels::cuda::attention_gradient_workspace(a),
                      "the gradient of attention", options.small);
    report.uses_warpgroups(false);
    report.values(way.name, wrong.empty());
    report.row(wrong.empty(), text_of("attention %s, %s", s.text().c_str(), way.name),
               "forward " + rate_of_product(s.flops(), ahead, peaks) +
                   text_of(", error %.0e; backward ", forward) +
                   rate_of_product(2.5 * s.flops(), back, peaks) + text_of(", error %.0e", gradient) + wrong);
    if (is_gpt2 && way.products == (has_warpgroups() ? ProductKernels::warpgroup : ProductKernels::tensor))
      report.share("attention", 12 * (ahead + back) * 1e9 / static_cast<double>(s.samples * s.rows));
  }
}

}  // namespace

static std::vector<Shape> shapes_of(const Options& options) {
  if (options.small) return {{2, 80, 2, 2, 64}, {2, 72, 4, 2, 128}};
  return {{16, 1024, 12, 12, 64}, {8, 2048, 32, 8, 128}};
}

void check_attention(Report& report, const Options& options, Peaks& peaks) {
  Calls calls;
  std::vector<Way> ways = {{"tensor", ProductKernels::tensor}};
  if (has_warpgroups()) ways.push_back({"wgmma", ProductKernels::warpgroup});
  const std::vector<Shape> shapes = shapes_of(options);
  for (const Shape& s : shapes) check_shape(report, options, peaks, calls, s, ways, &s == &shapes[0]);
}

void measure_cudnn_attention(Report& report, const Options& options, Peaks& peaks) {
  Calls calls;
  const auto cudnn = cuda::CudnnAttention::create("");
  if (!cudnn) return report.note("attention by cuDNN", "not available: " + cudnn.error().message);
  calls.attention = (*cudnn)->library();
  for (const Shape& s : shapes_of(options))
    check_shape(report, options, peaks, calls, s, {{"cuDNN", ProductKernels::library}}, false);
  for (const std::string& declined : (*cudnn)->take_declined())
    report.note("attention by cuDNN", "it declines, our own kernels did it: " + declined);
  if (const auto status = (*cudnn)->take_error(); !status)
    report.row(false, "attention by cuDNN", status.error().message);
}

}  // namespace stw::probe
