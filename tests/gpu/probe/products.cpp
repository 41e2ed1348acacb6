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

// Our own kernels, as the planner requests them.
static std::vector<ProductKernels> own_kinds() {
  std::vector<ProductKernels> kinds = {ProductKernels::tensor};
  if (has_warpgroups()) kinds.push_back(ProductKernels::warpgroup);
  return kinds;
}
// cuBLASLt's kernels, if it is installed.
struct Cublaslt {
  std::unique_ptr<cuda::Matmul> matmul;
  std::string why;  // why there is no cuBLASLt
  Cublaslt() {
    auto created = cuda::Matmul::create("");
    if (created) matmul = std::move(*created);
    else why = created.error().message;
  }
  const kernels::ProductLibrary* library() const { return matmul ? matmul->library() : nullptr; }
  void report_error(Report& report, const std::string& name) const {
    if (const auto status = matmul->take_error(); !status) report.row(false, name, status.error().message);
  }
};
static const char* name_of(ProductKernels products) {
  return products == ProductKernels::chain     ? "portable"
         : products == ProductKernels::tensor  ? "tensor"
         : products == ProductKernels::library ? "cublaslt"
                                               : "wgmma";
}

void measure_copy(Report& report, const Options& options, Peaks& peaks) {
  const uint64_t bytes = options.small ? 1 << 20 : uint64_t{1} << 30;
  const Memory from(bytes), to(bytes);
  const double seconds = Calls::seconds_of(
      [&] {
        check(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, nullptr), "a copy");
      },
      "a copy", options.small);
  peaks.copy_bytes = 2 * static_cast<double>(bytes) / seconds;
  report.note("the card's own copy", text_of("%.3g TB/s; %.3g were measured on an H100",
                                             peaks.copy_bytes * 1e-12, measured_copy * 1e-12));
  report.figure("copy GB/s", peaks.copy_bytes * 1e-9);
  report.peaks(peaks);
}

void measure_peak(Report& report, const Options& options, Peaks& peaks) {
  const char* const name = "the card's own bf16 product";
  const int64_t n = options.small ? 128 : 8192;
  const Noise noise(static_cast<uint64_t>(2 * n * n));
  const Memory product(static_cast<uint64_t>(2 * n * n));
  const Cublaslt cublaslt;
  const auto at = [&](int64_t first) {
    return noise.device(static_cast<uint64_t>(first), static_cast<uint64_t>(n * n));
  };
  const kernels::LibraryProduct wanted = {
      n,    n, n, DType::bf16, DType::bf16,    at(0),   at(n * n), false,
      true, n, n, n,           product.data(), nullptr, nullptr,   kernels::LibraryProduct::Free::none};
  const kernels::ProductLibrary* const library = cublaslt.library();
  if (!library || !library->takes(library->self, wanted))
    return report.note(name, "unknown: " + (library ? "cuBLASLt declines it" : cublaslt.why));
  const double seconds = Calls::seconds_of([&] { library->multiply(library->self, wanted, nullptr); },
                                           "cuBLASLt's product", options.small);
  if (const auto status = cublaslt.matmul->take_error(); !status)
    return report.row(false, name, status.error().message);
  peaks.product_flops = 2 * std::pow(static_cast<double>(n), 3) / seconds;
  report.note(name,
              text_of("%.3g TFLOP/s, %lld cubed by cuBLASLt; %.3g were measured on an H100",
                      peaks.product_flops * 1e-12, static_cast<long long>(n), measured_product * 1e-12));
  report.figure("product TFLOP/s", peaks.product_flops * 1e-12);
  report.peaks(peaks);
}

// ---- tiles
static ProductKernels kernels_of_tile(int tile) {
  return std::strncmp(kernels::cuda::product_tile_names[tile], "wgmma", 5) == 0 ? ProductKernels::warpgroup
                                                                                : ProductKernels::tensor;
}

// Runs all tiles of one product and one kind of kernels. They must give the same bits, and must be close to
// double precision.
static void check_tiles_of(Report& report, const Noise& noise, Calls& calls, const Linear& linear,
                           const Samples& samples, ProductKernels products) {
  Memory output(linear.output_bytes());
  std::vector<uint16_t> first;
  std::string names, wrong;
  report.uses_warpgroups(products == ProductKernels::warpgroup);
  for (int tile = 0; tile < kernels::cuda::product_tile_count; ++tile) {
    if (kernels_of_tile(tile) != products) continue;
    const char* const name = kernels::cuda::product_tile_names[tile];
    developer_switches().tile = tile, developer_switches().refused = 0;
    output.poison();
    run(calls, linear, linear.args(noise, output, products));
    if (developer_switches().refused > 0) continue;
    names += (names.empty() ? "" : ", ") + std::string(name);
    const std::vector<uint16_t> got = output.values<uint16_t>(linear.output_bytes() / 2);
    const Error error = error_of(linear, samples, got);
    if (first.empty()) first = got;
    if (const uint64_t unwritten =
            linear.is_float()
                ? poisoned(std::span(reinterpret_cast<const float*>(got.data()), got.size() / 2))
                : poisoned(got))
      wrong +=
          text_of("; %s leaves %llu elements unwritten", name, static_cast<unsigned long long>(unwritten));
    if (!output.is_guard_whole()) wrong += text_of("; %s writes past its output", name);
    if (!error.within) wrong += text_of("; %s is %.1e off", name, error.relative());
    if (first != got) {
      const size_t at =
          static_cast<size_t>(std::mismatch(first.begin(), first.end(), got.begin()).first - first.begin()) /
          (linear.is_float() ? 2 : 1);
      wrong += text_of("; %s has other bits than the first tile, at element %zu", name, at);
    }
  }
  report.uses_warpgroups(false);
  developer_switches().tile = -1;
  if (names.empty()) wrong += "; no tile takes it";
  report.values(name_of(products), wrong.empty());
  report.row(wrong.empty(), linear.text() + ", " + name_of(products), names + wrong);
}

void check_tiles(Report& report, const Options& options, Peaks&) {
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
        for (const bool transposed : {false, true}) {
          const Linear linear = {rows, inputs, features, pass, transposed, options.small ? 48 : 1024};
          const Samples samples = samples_of(linear, noise, sample_count);
          for (const ProductKernels products : own_kinds())
            check_tiles_of(report, noise, calls, linear, samples, products);
        }
}

// ---- GPT-2's products
struct Matrix {
  const char* name;
  int64_t inputs, features;
};
static constexpr Matrix matrices[] = {
    {"qkv", 768, 2304}, {"attended", 768, 768}, {"up", 768, 3072}, {"down", 3072, 768}};

// GPT-2's products with a name, and the noise for all of them.
struct Gpt2Products {
  std::vector<std::pair<std::string, Linear>> all;
  uint64_t noise = 0;
  explicit Gpt2Products(bool small) {
    const int64_t rows = small ? 96 : 16384, part = small ? 32 : 1, samples = small ? 48 : 1024;
    const int64_t head_rows = small ? 48 : 4096, vocabulary = small ? 264 : 50304;
    for (const Pass pass : passes)
      for (const Matrix& m : matrices)
        all.push_back({m.name, {rows, m.inputs / part, m.features / part, pass, true, samples}});
    for (const Pass pass : passes)
      all.push_back({"head", {head_rows, 768 / part, vocabulary, pass, false, samples}});
    for (const auto& [name, linear] : all) noise = std::max(noise, linear.noise());
  }
};

// Nanoseconds per token.
static double measure(Report& report, const Options& options, const Peaks& peaks, const Noise& noise,
                      Calls& calls, const Linear& linear, const std::string& name, const Samples& samples,
                      ProductKernels products) {
  Memory output(linear.output_bytes());
  const kernels::LinearArgs args = linear.args(noise, output, products);
  report.uses_warpgroups(products == ProductKernels::warpgroup);
  output.poison();
  run(calls, linear, args);
  const Error error = error_of(linear, samples, output.values<uint16_t>(linear.output_bytes() / 2));
  const double one = seconds(calls, linear, args, options.small);
  const bool good = error.within && output.is_guard_whole();
  report.uses_warpgroups(false);
  report.values(name_of(products), good);
  report.row(good, name + ", " + linear.text() + ", " + name_of(products),
             text_of("%s, error %.0e%s", rate_of_product(linear.flops(), one, peaks).c_str(),
                     error.relative(), error.within ? "" : " TOO LARGE"));
  return one * 1e9 / static_cast<double>(linear.rows);
}

void measure_products(Report& report, const Options& options, Peaks& peaks) {
  Calls calls;
  const Gpt2Products gpt2(options.small);
  const Noise noise(gpt2.noise);
  for (const auto& [name, linear] : gpt2.all) {
    const Samples samples = samples_of(linear, noise, options.small ? 32 : sample_count);
    double nanoseconds = 0;  // of the last kind, which the expectations describe
    for (const ProductKernels products : own_kinds())
      nanoseconds = measure(report, options, peaks, noise, calls, linear, name, samples, products);
    if (name == "head") report.share("head", nanoseconds);
    else report.share(probe::name_of(linear.pass), 12 * nanoseconds);
  }
}

// ---- tile costs
// The speed of each tile, and how much longer the tile with the shortest estimated time takes than the
// fastest.
static double regret_of(Report& report, const Options& options, const Noise& noise, Calls& calls,
                        const Linear& linear, const std::string& name, ProductKernels products) {
  Memory output(linear.output_bytes());
  const kernels::LinearArgs args = linear.args(noise, output, products);
  report.uses_warpgroups(products == ProductKernels::warpgroup);
  developer_switches() = {};
  run(calls, linear, args);
  const int chosen = developer_switches().chosen;
  double least = 0, of_chosen = 0;
  std::string text, fastest;
  for (int tile = 0; tile < kernels::cuda::product_tile_count; ++tile) {
    if (kernels_of_tile(tile) != products) continue;
    developer_switches().tile = tile, developer_switches().refused = 0;
    run(calls, linear, args);
    if (developer_switches().refused > 0) continue;
    const double one = seconds(calls, linear, args, options.small);
    const std::string tile_name = kernels::cuda::product_tile_names[tile];
    text += text_of(", %s %.3g", tile_name.c_str(), linear.flops() / one * 1e-12);
    if (tile == chosen) of_chosen = one;
    if (least == 0 || one < least) least = one, fastest = tile_name;
  }
  report.uses_warpgroups(false);
  developer_switches() = {};
  const double regret = of_chosen / least - 1;
  report.row(of_chosen > 0, "tiles of " + name + ", " + linear.text() + ", " + name_of(products),
             text_of("chosen %s takes %.1f %% longer than %s; TFLOP/s",
                     chosen >= 0 ? kernels::cuda::product_tile_names[chosen] : "none", 100 * regret,
                     fastest.c_str()) +
                 text);
  return regret;
}

void measure_costs(Report& report, const Options& options, Peaks&) {
  Calls calls;
  const Gpt2Products gpt2(options.small);
  const Noise noise(gpt2.noise);
  for (const ProductKernels products : own_kinds())
    for (const auto& [name, linear] : gpt2.all)
      report.figure(std::string("tile regret ") + name_of(products),
                    regret_of(report, options, noise, calls, linear, name, products));
}

// ---- half a million tokens
static void check_chain_of(Report& report, const Options& options, const Peaks& peaks, const Noise& noise,
                           Calls& calls, const Linear& linear, const Samples& samples,
                           ProductKernels products, bool exact) {
  const double limit = 4 * samples.rounded / samples.scale;
  Memory output(linear.output_bytes());
  const kernels::LinearArgs args = linear.args(noise, output, products, exact);
  report.uses_warpgroups(products == ProductKernels::warpgroup);
  output.poison();
  run(calls, linear, args);
  const Error error = error_of(linear, samples, output.values<uint16_t>(linear.output_bytes() / 2), limit);
  const double one = seconds(calls, linear, args, options.small);
  report.uses_warpgroups(false);
  // Fast sums are one chain of the library, however long. Their error is reported, but not required.
  const bool good = (error.within || !exact) && output.is_guard_whole();
  report.values(name_of(products), good);
  report.row(good,
             text_of("dW of %lld tokens, %s%s", static_cast<long long>(linear.rows), name_of(products),
                     exact ? "" : " fast"),
             text_of("error %.2e of the largest, limit %.2e, one chain rounded to nearest %.2e; ",
                     error.relative(), limit, samples.rounded / samples.scale) +
                 rate_of_product(linear.flops(), one, peaks));
}
static Linear long_product(const Options& options) {
  return {
      options.small ? 4096 : 524288, options.small ? 16 : 128, options.small ? 16 : 128, Pass::weight, false,
      options.small ? 512 : 1024};
}

void check_chain(Report& report, const Options& options, Peaks& peaks) {
  Calls calls;
  const Linear linear = long_product(options);
  const Noise noise(linear.noise());
  const Samples samples = samples_of(linear, noise, options.small ? 64 : 128);
  for (const ProductKernels products : own_kinds())
    check_chain_of(report, options, peaks, noise, calls, linear, samples, products, true);
}

// ---- NVIDIA's libraries
void measure_libraries(Report& report, const Options& options, Peaks& peaks) {
  Calls calls;
  const Cublaslt cublaslt;
  calls.products = cublaslt.library();
  if (!calls.products) {
    report.note("products by cuBLASLt", "not available: " + cublaslt.why);
  } else {
    const Gpt2Products gpt2(options.small);
    const Noise noise(gpt2.noise);
    for (const auto& [name, linear] : gpt2.all)
      measure(report, options, peaks, noise, calls, linear, name,
              samples_of(linear, noise, options.small ? 32 : sample_count), ProductKernels::library);
    const Linear linear = long_product(options);
    const Noise of_long(linear.noise());
    const Samples samples = samples_of(linear, of_long, options.small ? 64 : 128);
    for (const bool exact : {true, false})
      check_chain_of(report, options, peaks, of_long, calls, linear, samples, ProductKernels::library, exact);
    cublaslt.report_error(report, "products by cuBLASLt");
  }
  measure_cudnn_attention(report, options, peaks);
}

// ---- switches
// Settings that a developer can change in addition to the tile (developer.h), compared with the default ones.
// A figure is the time without the variant over the time with it: above 1, the variant is faster.
using Switches = kernels::cuda::DeveloperSwitches;
enum class Bits { same, open, other };  // same: required; open: not known; other: differ by design
struct Variant {
  const char* name;
  Pass pass;
  const char* matrix;  // a name of `matrices`
  Bits bits;
  void (*without)(Switches& switches);
  void (*with)(Switches& switches);
};
static void as_it_is(Switches&) {}
static void no_fence(Switches& s) { s.fence = false; }
static void no_totals(Switches& s) { s.chain = int64_t{1} << 20; }
template <int tile, int stages>
static void staged(Switches& s) {
  s.tile = tile, s.stages = stages;
}
static constexpr auto fewer_of_64x128 = staged<kernels::cuda::wgmma_64x128, 4>,
                      more_of_64x128 = staged<kernels::cuda::wgmma_64x128, 6>,
                      fewer_of_128x128 = staged<kernels::cuda::wgmma_128x128, 4>,
                      more_of_128x128 = staged<kernels::cuda::wgmma_128x128, 6>;
// The weight gradients of `attended` and `qkv` have few tiles.
static const Variant variants[] = {
    {"without the fence", Pass::forward, "up", Bits::open, as_it_is, no_fence},
    {"without the fence", Pass::input, "up", Bits::open, as_it_is, no_fence},
    {"without the fence", Pass::weight, "up", Bits::open, as_it_is, no_fence},
    {"6 stages of 64x128", Pass::weight, "attended", Bits::same, fewer_of_64x128, more_of_64x128},
    {"6 stages of 64x128", Pass::weight, "qkv", Bits::same, fewer_of_64x128, more_of_64x128},
    {"6 stages of 64x128", Pass::weight, "up", Bits::same, fewer_of_64x128, more_of_64x128},
    {"6 stages of 128x128", Pass::weight, "attended", Bits::same, fewer_of_128x128, more_of_128x128},
    {"6 stages of 128x128", Pass::weight, "qkv", Bits::same, fewer_of_128x128, more_of_128x128},
    {"6 stages of 128x128", Pass::weight, "up", Bits::same, fewer_of_128x128, more_of_128x128},
    {"one chain", Pass::weight, "attended", Bits::other, as_it_is, no_totals},
    {"one chain", Pass::weight, "up", Bits::other, as_it_is, no_totals},
};

static void check_variant(Report& report, const Options& options, const Noise& noise, Calls& calls,
                          const Linear& linear, const Variant& variant) {
  const std::string name = linear.text() + ", " + variant.name;
  if (variant.bits == Bits::open && options.small) return report.note(name, "only a card can say");
  Memory output(linear.output_bytes());
  const kernels::LinearArgs args = linear.args(noise, output, ProductKernels::warpgroup);
  std::vector<uint16_t> bits[2];
  double time[2] = {};
  int refused = 0;
  report.uses_warpgroups(true);
  for (int i = 0; i < 2; ++i) {
    developer_switches() = {};
    (i == 0 ? variant.without : variant.with)(developer_switches());
    output.poison();
    run(calls, linear, args);
    refused += developer_switches().refused;
    bits[i] = output.values<uint16_t>(linear.output_bytes() / 2);
    time[i] = seconds(calls, linear, args, options.small);
  }
  report.uses_warpgroups(false);
  developer_switches() = {};
  if (refused > 0) return report.row(false, name, "this product does not take it");
  const bool same = bits[0] == bits[1];
  report.figure(std::string("gain of ") + variant.name + ", " + variant.matrix, time[0] / time[1]);
  if (variant.bits == Bits::open) report.figure(std::string("bits ") + variant.name, same ? 1 : 0);
  report.row(same || variant.bits != Bits::same, name,
             text_of("%.3g and %.3g TFLOP/s, %.3f times as fast%s", linear.flops() / time[0] * 1e-12,
                     linear.flops() / time[1] * 1e-12, time[0] / time[1],
                     same                          ? ""
                     : variant.bits == Bits::other ? "; other bits, as it must be"
                                                   : "; OTHER BITS"));
}

void check_variants(Report& report, const Options& options, Peaks&) {
  if (!has_warpgroups()) return report.note("variants", "of products by wgmma, which this device has not");
  Calls calls;
  const Gpt2Products gpt2(options.small);
  const Noise noise(gpt2.noise);
  for (const Variant& variant : variants)
    for (const auto& [name, linear] : gpt2.all)
      if (name == variant.matrix && linear.pass == variant.pass)
        check_variant(report, options, noise, calls, linear, variant);
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
