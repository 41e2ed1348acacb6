// Matrix products: all tiles compared with each other and with double precision, GPT-2's products with the
// default tiles, the developer switches, and a sum over half a million tokens.
#include <algorithm>
#include <cstring>

#include "kernels/cuda/developer.h"
#include "src/cuda/matmul.h"
#include "tests/gpu/probe/expectations.h"
#include "tests/gpu/probe/linear.h"
#include "tests/gpu/probe/parts.h"

namespace stw::probe {

using kernels::cuda::developer_switches;

static constexpr int64_t sample_count = 256;  // elements computed in double precision

// Kernels as the planner requests them, and cuBLASLt's if it is installed.
struct Ways {
  std::unique_ptr<cuda::Matmul> matmul;
  std::string why;  // why there is no cuBLASLt
  Ways() {
    auto created = cuda::Matmul::create("");
    if (created) matmul = std::move(*created);
    else why = created.error().message;
  }
  std::vector<ProductKernels> all() const {
    std::vector<ProductKernels> ways = {ProductKernels::tensor};
    if (has_warpgroups()) ways.push_back(ProductKernels::warpgroup);
    if (matmul) ways.push_back(ProductKernels::library);
    return ways;
  }
};
static const char* name_of(ProductKernels products) {
  return products == ProductKernels::chain     ? "portable"
         : products == ProductKernels::tensor  ? "tensor"
         : products == ProductKernels::library ? "cublaslt"
                                               : "wgmma";
}

void measure_peaks(Report& report, const Options& options, Peaks& peaks) {
  const uint64_t bytes = options.small ? 1 << 20 : uint64_t{1} << 30;
  const Memory from(bytes), to(bytes);
  double seconds = Calls::seconds_of(
      [&] {
        check(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, nullptr), "a copy");
      },
      "a copy", options.small);
  peaks.copy_bytes = 2 * static_cast<double>(bytes) / seconds;
  report.note("the card's own copy", text_of("%.3g TB/s; %.3g were measured on an H100",
                                             peaks.copy_bytes * 1e-12, measured_copy * 1e-12));
  const int64_t n = options.small ? 128 : 8192;
  const Noise noise(static_cast<uint64_t>(2 * n * n));
  const Memory product(static_cast<uint64_t>(2 * n * n));
  Ways ways;
  const auto at = [&](int64_t first) {
    return noise.device(static_cast<uint64_t>(first), static_cast<uint64_t>(n * n));
  };
  const kernels::LibraryProduct wanted = {
      n,    n, n, DType::bf16, DType::bf16,    at(0),   at(n * n), false,
      true, n, n, n,           product.data(), nullptr, nullptr,   kernels::LibraryProduct::Free::none};
  const kernels::ProductLibrary* const library = ways.matmul ? ways.matmul->library() : nullptr;
  if (!library || !library->takes(library->self, wanted)) {
    report.note("the card's own bf16 product",
                "unknown: " + (ways.matmul ? "cuBLASLt declines it" : ways.why));
  } else {
    seconds = Calls::seconds_of([&] { library->multiply(library->self, wanted, nullptr); },
                                "cuBLASLt's product", options.small);
    if (const auto status = ways.matmul->take_error(); !status)
      return report.row(false, "the card's own bf16 product", status.error().message);
    peaks.product_flops = 2 * std::pow(static_cast<double>(n), 3) / seconds;
    report.note("the card's own bf16 product",
                text_of("%.3g TFLOP/s, %lld cubed by cuBLASLt; %.3g were measured on an H100",
                        peaks.product_flops * 1e-12, static_cast<long long>(n), measured_product * 1e-12));
  }
  report.peaks(peaks);
}

// ---- tiles
static ProductKernels kernels_of_tile(int tile) {
  return std::strncmp(kernels::cuda::product_tile_names[tile], "wgmma", 5) == 0 ? ProductKernels::warpgroup
                                                                                : ProductKernels::tensor;
}

// Runs all tiles of one product. The mma.sync tiles must give the same bits, and so must the wgmma tiles, and
// all must be close to double precision. Reports the speed of each.
static void check_tiles_of(Report& report, const Options& options, const Peaks& peaks, const Noise& noise,
                           Calls& calls, const Linear& linear) {
  Memory output(linear.output_bytes());
  const Samples samples = samples_of(linear, noise, sample_count);
  std::vector<uint16_t> first[2];  // first result: of mma.sync, of wgmma
  std::string text, wrong;
  double fastest = 0;
  for (int tile = 0; tile < kernels::cuda::product_tile_count; ++tile) {
    const ProductKernels products = kernels_of_tile(tile);
    if (products == ProductKernels::warpgroup && !has_warpgroups()) continue;
    const char* const name = kernels::cuda::product_tile_names[tile];
    developer_switches().tile = tile, developer_switches().refused = 0;
    output.poison();
    const kernels::LinearArgs args = linear.args(noise, output, products);
    run(calls, linear, args);
    if (developer_switches().refused > 0) continue;
    const std::vector<uint16_t> got = output.values<uint16_t>(linear.output_bytes() / 2);
    const Error error = error_of(linear, samples, got);
    std::vector<uint16_t>& same = first[products == ProductKernels::warpgroup];
    if (same.empty()) same = got;
    if (const uint64_t unwritten =
            linear.is_float()
                ? poisoned(std::span(reinterpret_cast<const float*>(got.data()), got.size() / 2))
                : poisoned(got))
      wrong +=
          text_of("; %s leaves %llu elements unwritten", name, static_cast<unsigned long long>(unwritten));
    if (!output.is_guard_whole()) wrong += text_of("; %s writes past its output", name);
    if (!error.within) wrong += text_of("; %s is %.1e off", name, error.relative());
    if (same != got) {
      const size_t at =
          static_cast<size_t>(std::mismatch(same.begin(), same.end(), got.begin()).first - same.begin()) /
          (linear.is_float() ? 2 : 1);
      wrong += text_of("; %s has other bits than the first tile, at element %zu", name, at);
    }
    const double speed = linear.flops() / seconds(calls, linear, args, options.small);
    text += text_of("%s%s %.3g", text.empty() ? "TFLOP/s: " : ", ", name, speed * 1e-12);
    if (speed > fastest) fastest = speed;
  }
  developer_switches().tile = -1;
  if (text.empty()) wrong += "; no tile takes it";
  if (peaks.product_flops > 0)
    text += text_of("; the best %.0f %% of the peak", 100 * fastest / peaks.product_flops);
  report.row(wrong.empty(), linear.text(), text + wrong);
}

void check_tiles(Report& report, const Options& options, Peaks& peaks) {
  Calls calls;
  const int64_t rows = options.small ? 144 : 4096, widest = options.small ? 272 : 3072;
  const Noise noise(static_cast<uint64_t>(2 * rows * widest + widest * widest));
  const std::vector<int64_t> depths =
      options.small ? std::vector<int64_t>{80} : std::vector<int64_t>{768, 3072};
  const std::vector<int64_t> widths =
      options.small ? std::vector<int64_t>{widest} : std::vector<int64_t>{2304, 768, 3072};
  for (const int64_t inputs : depths)
    for (const int64_t features : widths)
      for (const Pass pass : passes)
        for (const bool transposed : {false, true})
          check_tiles_of(report, options, peaks, noise, calls,
                         {rows, inputs, features, pass, transposed, options.small ? 48 : 1024});
}

// ---- GPT-2's products
struct Matrix {
  const char* name;
  int64_t inputs, features;
};
static constexpr Matrix matrices[] = {
    {"qkv", 768, 2304}, {"attended", 768, 768}, {"up", 768, 3072}, {"down", 3072, 768}};

// Nanoseconds per token for each kind of kernels; rows[i] belongs to ways.all()[i].
static std::vector<double> measure(Report& report, const Options& options, const Peaks& peaks,
                                   const Noise& noise, Calls& calls, const Ways& ways, const Linear& linear,
                                   const char* name) {
  Memory output(linear.output_bytes());
  std::vector<double> nanoseconds;
  std::string text;
  const Samples samples = samples_of(linear, noise, options.small ? 32 : sample_count);
  bool good = true;
  for (const ProductKernels products : ways.all()) {
    calls.products = products == ProductKernels::library ? ways.matmul->library() : nullptr;
    const kernels::LinearArgs args = linear.args(noise, output, products);
    output.poison();
    run(calls, linear, args);
    const Error error = error_of(linear, samples, output.values<uint16_t>(linear.output_bytes() / 2));
    const double one = seconds(calls, linear, args, options.small);
    good = good && error.within && output.is_guard_whole();
    text += text_of("%s%s %s, error %.0e%s", text.empty() ? "" : "; ", name_of(products),
                    rate_of_product(linear.flops(), one, peaks).c_str(), error.relative(),
                    error.within ? "" : " TOO LARGE");
    nanoseconds.push_back(one * 1e9 / static_cast<double>(linear.rows));
  }
  if (ways.matmul)
    if (const auto status = ways.matmul->take_error(); !status)
      good = false, text += "; " + status.error().message;
  report.row(good, std::string(name) + ", " + linear.text(), text);
  return nanoseconds;
}

void measure_products(Report& report, const Options& options, Peaks& peaks) {
  Calls calls;
  const Ways ways;
  const int64_t rows = options.small ? 96 : 16384, part = options.small ? 32 : 1,
                samples = options.small ? 48 : 1024;
  const int64_t head_rows = options.small ? 48 : 4096, vocabulary = options.small ? 264 : 50304,
                width = 768 / part;
  const Noise noise(static_cast<uint64_t>(std::max(2 * rows * 3072 / part, head_rows * (vocabulary + width)) +
                                          vocabulary * width));
  const size_t best = has_warpgroups() ? 1 : 0;  // the kernels that the expectations describe
  for (const Pass pass : passes)
    for (const Matrix& m : matrices) {
      const Linear linear = {rows, m.inputs / part, m.features / part, pass, true, samples};
      report.share(probe::name_of(pass),
                   12 * measure(report, options, peaks, noise, calls, ways, linear, m.name)[best]);
    }
  for (const Pass pass : passes) {
    const Linear linear = {head_rows, width, vocabulary, pass, false, samples};
    report.share("head", measure(report, options, peaks, noise, calls, ways, linear, "head")[best]);
  }
}

// ---- half a million tokens
void check_chain(Report& report, const Options& options, Peaks& peaks) {
  Calls calls;
  const Ways ways;
  const Linear linear = {
      options.small ? 4096 : 524288, options.small ? 16 : 128, options.small ? 16 : 128, Pass::weight, false,
      options.small ? 512 : 1024};
  const Noise noise(linear.noise());
  const Samples samples = samples_of(linear, noise, options.small ? 64 : 128);
  const double limit = 4 * samples.rounded / samples.scale;
  Memory output(linear.output_bytes());
  for (const ProductKernels products : ways.all())
    for (const bool exact : {true, false}) {
      if (!exact && products != ProductKernels::library) continue;
      calls.products = products == ProductKernels::library ? ways.matmul->library() : nullptr;
      output.poison();
      const kernels::LinearArgs args = linear.args(noise, output, products, exact);
      run(calls, linear, args);
      const Error error =
          error_of(linear, samples, output.values<uint16_t>(linear.output_bytes() / 2), limit);
      // Fast sums are one chain of the library, however long. Their error is reported, but not required.
      report.row((error.within || !exact) && output.is_guard_whole(),
                 text_of("dW of %lld tokens, %s%s", static_cast<long long>(linear.rows), name_of(products),
                         exact ? "" : " fast"),
                 text_of("error %.2e of the largest, limit %.2e, one chain rounded to nearest %.2e; ",
                         error.relative(), limit, samples.rounded / samples.scale) +
                     rate_of_product(linear.flops(), seconds(calls, linear, args, options.small), peaks));
    }
  if (ways.matmul)
    if (const auto status = ways.matmul->take_error(); !status)
      report.row(false, "dW by cuBLASLt", status.error().message);
}

// ---- switches
// Settings that a developer can change in addition to the tile. The first variant is the default. The bits of
// the others must equal those of the default, unless is_open is set.
struct Variant {
  const char* name;
  bool is_of_weights;  // only for weight gradients
  bool is_open;        // whether the bits stay the same is an open question; other bits are not an error
  void (*choose)(kernels::cuda::DeveloperSwitches& switches);
};
using Switches = kernels::cuda::DeveloperSwitches;
static const Variant variants[] = {
    {"as it is", false, false, [](Switches&) {}},
    {"without the fence", false, true, [](Switches& s) { s.fence = false; }},
    {"128x128, fewer stages", true, false,
     [](Switches& s) { s.tile = kernels::cuda::wgmma_128x128, s.stages = 3; }},
    {"128x128, 6 stages", true, false,
     [](Switches& s) { s.tile = kernels::cuda::wgmma_128x128, s.stages = 6; }},
    {"64x128, fewer stages", true, false,
     [](Switches& s) { s.tile = kernels::cuda::wgmma_64x128, s.stages = 3; }},
    {"64x128, 6 stages", true, false,
     [](Switches& s) { s.tile = kernels::cuda::wgmma_64x128, s.stages = 6; }},
};

void check_variants(Report& report, const Options& options, Peaks& peaks) {
  if (!has_warpgroups()) return report.note("variants", "of products by wgmma, which this device has not");
  Calls calls;
  const int64_t rows = options.small ? 96 : 16384, inputs = options.small ? 80 : 768,
                features = options.small ? 144 : 3072;
  const Noise noise(static_cast<uint64_t>(rows * (inputs + features) + inputs * features));
  for (const Pass pass : passes) {
    const Linear linear = {rows, inputs, features, pass, true, options.small ? 48 : 1024};
    Memory output(linear.output_bytes());
    const kernels::LinearArgs args = linear.args(noise, output, ProductKernels::warpgroup);
    std::vector<uint16_t> first;
    for (const Variant& variant : variants) {
      if (variant.is_of_weights && pass != Pass::weight) continue;
      const std::string name = linear.text() + ", " + variant.name;
      if (variant.is_open && options.small) {
        report.note(name, "only a card can say");
        continue;
      }
      developer_switches() = {};
      variant.choose(developer_switches());
      output.poison();
      run(calls, linear, args);
      const bool refused = developer_switches().refused > 0;
      const auto got = output.values<uint16_t>(linear.output_bytes() / 2);
      if (first.empty()) first = got;
      const double one = refused ? 0 : seconds(calls, linear, args, options.small);
      developer_switches() = {};
      const bool same = got == first;
      if (refused) report.row(false, name, "this product does not take it");
      else
        report.row(same || variant.is_open, name,
                   rate_of_product(linear.flops(), one, peaks) + (same ? "" : "; OTHER BITS"));
    }
  }
}

// ---- for a profiler
void run_once(Report& report, const Options& options, Peaks&) {
  Calls calls;
  const bool small = options.small;
  const ProductKernels products = has_warpgroups() ? ProductKernels::warpgroup : ProductKernels::tensor;
  const int64_t rows = small ? 96 : 16384, width = small ? 48 : 768;
  const Noise noise(static_cast<uint64_t>(small ? 1 << 20 : 1 << 27));
  for (const Pass pass : passes) {
    const Linear linear = {rows, width, 4 * width, pass, true, small ? 48 : 1024};
    const Memory output(linear.output_bytes());
    run(calls, linear, linear.args(noise, output, products));
  }
  kernels::AttentionArgs a = {};
  a.samples = small ? 2 : 16, a.rows_per_sample = small ? 48 : 1024;
  a.query_heads = a.kv_heads = small ? 1 : 12, a.head_dim = 64, a.scale = 0.125f, a.causal = true,
  a.products = products;
  const auto tokens = static_cast<uint64_t>(a.samples * a.rows_per_sample),
             heads = static_cast<uint64_t>(a.query_heads), out = tokens * heads * 64;
  const Memory attended(2 * out), lse(4 * tokens * heads), dqkv(6 * out);
  a.qkv = {noise.device(0, 3 * out), DType::bf16}, a.dout = {noise.device(3 * out, out), DType::bf16};
  a.out = {attended.data(), DType::bf16}, a.lse = lse.as<float>(), a.dqkv = {dqkv.data(), DType::bf16};
  calls.run(calls.table.attention, a, kernels::cuda::attention_workspace(a), "attention");
  calls.run(calls.table.attention_gradient, a, kernels::cuda::attention_gradient_workspace(a),
            "the gradient of attention");
  const int64_t loss_rows = small ? 4 : 8192, vocabulary = 50257, stride = 50272;
  Memory logits(static_cast<uint64_t>(2 * loss_rows * stride));
  logits.fill(noise.memory(), 0);
  const Memory targets = Memory::of(std::vector<int32_t>(static_cast<size_t>(loss_rows), 7)),
               losses(static_cast<uint64_t>(4 * loss_rows));
  kernels::CrossEntropyArgs c = {};
  c.rows = loss_rows, c.vocabulary = vocabulary, c.stride = stride, c.gradient = true, c.fast = true;
  c.targets = targets.as<int32_t>(), c.logits = {logits.data(), DType::bf16},
  c.token_loss = losses.as<float>();
  calls.run(calls.table.cross_entropy, c, kernels::cuda::cross_entropy_workspace(c), "cross-entropy");
  report.note("once", "three products, attention and its gradient, cross-entropy");
}

}  // namespace stw::probe
