#include "planner/device/device.h"

#include <algorithm>
#include <string>
#include <vector>

namespace stw {

namespace {

constexpr uint64_t gib = uint64_t{1} << 30, mib = uint64_t{1} << 20;
// Sources of the figures. Memory, bandwidth, power, and dense peaks with fp32 accumulation are the vendor's.
// If a driver reports less total memory, the driver's figure is used. The bandwidth to the host is the
// vendor's, too: PCIe has 16 GB/s for eight lanes of the fourth generation; Orin and the CPU copy within
// their own memory.
//
// Figures of a generation, the share of streams and the launch time are estimates until a device has been
// calibrated. They were fitted to speeds that others have published for engines written in CUDA
// (tools/bench/predictions.py). Those that no published run determines are guesses: power in Ada and in
// Ampere's GA10x, and attention with heads of up to 64 numbers on H100 and B200.
//
// Hopper's mma.sync reaches 0.629 of the rated peak: Luo et al., Benchmarking and Dissecting the Nvidia
// Hopper GPU Architecture (arXiv 2402.13499). Our kernels are assumed to reach two thirds of that, which is
// 0.63 of the ceiling. The share for the B200 is an estimate. The share of wgmma is computed from counts of
// instructions, tiles and bytes of GPT-2 124M at 1024 tokens.
//
// About the reserve, an estimate: a context alone takes 3 MiB a multiprocessor (107 MiB on an RTX 4060 Ti,
// 256 on an RTX 3090, 426 on an RTX 6000 Ada, 555 on an RTX PRO 6000: ggml-org/llama.cpp #23604,
// invoke-ai/InvokeAI #9413, unslothai/unsloth-zoo #1053). Our kernels, CUDA graphs, and NVIDIA's libraries
// take more.
#define STW_SHEET(what) "NVIDIA, " what "; ceiling, shares, reserve and launch are estimates"
constexpr const char* ga10x = STW_SHEET(
    "GA102 architecture whitepaper v2.1, product pages of the GeForce RTX 30 series, data sheets of "
    "the A10 and the RTX A6000");
constexpr const char* ada =
    STW_SHEET("Ada GPU architecture whitepaper v2.1 and product pages of the GeForce RTX 40 series");
constexpr const char* blackwell_rtx = STW_SHEET(
    "RTX Blackwell GPU architecture whitepapers, product pages of the GeForce RTX 50 series and the RTX PRO "
    "6000");
constexpr const char* a100 = STW_SHEET("A100 tensor core GPU data sheet");
constexpr const char* l4 = STW_SHEET("L4 tensor core GPU data sheet");
constexpr const char* l40s = STW_SHEET("L40S GPU data sheet");
constexpr const char* hopper = STW_SHEET("H100 and H200 tensor core GPU data sheets");
constexpr const char* blackwell = STW_SHEET("DGX B200 data sheet, per GPU");
constexpr const char* orin = STW_SHEET("Jetson AGX Orin series technical brief v1.2");
#undef STW_SHEET

// What the cards of a generation reach. Shares are of the ceiling.
struct Generation {
  uint64_t gflops_per_watt;
  uint32_t mma, wgmma;  // 0: no wgmma
  uint32_t attention, wide_attention;
};
constexpr Generation of_ga100{575, 950, 0, 500, 600}, of_ga10x{500, 950, 0, 500, 600},
    of_ada{700, 950, 0, 500, 600}, of_hopper{960, 630, 830, 530, 600}, of_gb100{1150, 500, 0, 500, 600},
    of_gb20x{680, 970, 0, 500, 640};

struct Card {
  const char *name, *title;
  uint64_t memory_bytes, reserve_bytes, gflops_fp32, gflops_bf16, gbytes_per_second, host_gbytes_per_second,
      watts;
};

constexpr uint32_t stream_share = 880, fp32_share = 700;
constexpr uint64_t launch = 5000;

constexpr DeviceProfile gpu(const Card& c, const Generation& g, const char* source) {
  DeviceProfile p{c.name,
                  c.title,
                  true,
                  c.memory_bytes,
                  c.reserve_bytes,
                  c.gflops_fp32,
                  c.gflops_bf16,
                  c.gbytes_per_second,
                  c.host_gbytes_per_second,
                  product_ceiling(c.gflops_bf16, c.watts, g.gflops_per_watt),
                  stream_share,
                  launch,
                  256,
                  source};
  p.mma_permille = g.mma;
  p.has_wgmma = g.wgmma > 0;
  p.wgmma_permille = g.wgmma > 0 ? g.wgmma : 1000;
  p.attention_permille = p.product_permille * g.attention / 1000;
  p.wide_attention_permille = p.product_permille * g.wide_attention / 1000;
  p.fp32_permille = fp32_share;
  p.watts = c.watts;
  p.gflops_per_watt = g.gflops_per_watt;
  return p;
}

constexpr DeviceProfile profiles[] = {
    {"cpu", "CPU", false, 0, 0, 100, 100, 22, 11, 850, 900, 8000, 64,
     "measured on a Zen 3 core at 3.5 GHz with AVX2 (peak and share of products per thread), two threads "
     "(bandwidth)"},
    gpu({"rtx3060", "NVIDIA GeForce RTX 3060", 12 * gib, 600 * mib, 12700, 25500, 360, 32, 170}, of_ga10x,
        ga10x),
    gpu({"rtx3090", "NVIDIA GeForce RTX 3090", 24 * gib, 600 * mib, 35600, 71000, 936, 32, 350}, of_ga10x,
        ga10x),
    gpu({"a10", "NVIDIA A10", 22 * gib, 600 * mib, 31200, 125000, 600, 32, 150}, of_ga10x, ga10x),
    gpu({"rtxa6000", "NVIDIA RTX A6000", 47 * gib, 600 * mib, 38700, 154800, 768, 32, 300}, of_ga10x, ga10x),
    gpu({"rtx4060", "NVIDIA GeForce RTX 4060", 8 * gib, 600 * mib, 15100, 30200, 272, 16, 115}, of_ada, ada),
    gpu({"rtx4090", "NVIDIA GeForce RTX 4090", 24 * gib, 600 * mib, 82600, 165200, 1008, 32, 450}, of_ada,
        ada),
    gpu({"rtx5060ti", "NVIDIA GeForce RTX 5060 Ti", 16 * gib, 600 * mib, 23700, 47400, 448, 32, 180},
        of_gb20x, blackwell_rtx),
    gpu({"rtx5090", "NVIDIA GeForce RTX 5090", 32 * gib, 800 * mib, 104800, 209500, 1792, 64, 575}, of_gb20x,
        blackwell_rtx),
    gpu({"rtxpro6000", "NVIDIA RTX PRO 6000", 95 * gib, 800 * mib, 125000, 503800, 1792, 64, 600}, of_gb20x,
        blackwell_rtx),
    gpu({"a100-40gb", "NVIDIA A100 40GB", 40 * gib, 600 * mib, 19500, 312000, 1555, 32, 400}, of_ga100, a100),
    gpu({"a100-80gb", "NVIDIA A100 80GB", 80 * gib, 600 * mib, 19500, 312000, 2039, 32, 400}, of_ga100, a100),
    gpu({"l4", "NVIDIA L4", 23 * gib, 600 * mib, 30300, 121000, 300, 32, 72}, of_ada, l4),
    gpu({"l40s", "NVIDIA L40S", 45 * gib, 600 * mib, 91600, 362000, 864, 32, 350}, of_ada, l40s),
    gpu({"h100", "NVIDIA H100 SXM", 80 * gib, 1 * gib, 67000, 989000, 3350, 64, 700}, of_hopper, hopper),
    gpu({"h100-pcie", "NVIDIA H100 PCIe", 79 * gib, 1 * gib, 51000, 756000, 2039, 64, 350}, of_hopper,
        hopper),
    gpu({"h200", "NVIDIA H200 SXM", 140 * gib, 1 * gib, 67000, 989000, 4800, 64, 700}, of_hopper, hopper),
    gpu({"b200", "NVIDIA B200", 178 * gib, 1 * gib, 75000, 2250000, 8000, 64, 1000}, of_gb100, blackwell),
    gpu({"orin", "NVIDIA Jetson AGX Orin 64GB", 60 * gib, 600 * mib, 5300, 42500, 204, 102, 60}, of_ga10x,
        orin),
};

uint64_t clamp(unsigned __int128 x) { return x > size_limit ? size_limit : static_cast<uint64_t>(x); }

}  // namespace

std::span<const DeviceProfile> device_profiles() { return profiles; }

const DeviceProfile* find_device(std::string_view name) {
  for (const DeviceProfile& p : profiles)
    if (name == p.name) return &p;
  return nullptr;
}

const DeviceProfile& profile_for(std::string_view driver_name, int compute_major, int compute_minor) {
  // "NVIDIA A100-SXM4-80GB" becomes "nvidiaa100sxm480gb". `begins`: whether a word of the name begins here.
  std::string letters;
  std::vector<bool> begins;
  bool separated = true;
  for (char c : driver_name) {
    const bool is_upper = c >= 'A' && c <= 'Z', is_digit = c >= '0' && c <= '9';
    if (is_upper || is_digit || (c >= 'a' && c <= 'z')) {
      letters += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
      begins.push_back(separated);
    }
    separated = !(is_upper || is_digit || (c >= 'a' && c <= 'z'));
  }
  // "a10" is no part of "a100".
  const auto has = [&](std::string_view word) {
    const size_t at = letters.find(word), end = at + word.size();
    return at != std::string::npos &&
           (end == letters.size() || begins[end] || letters[end] < '0' || letters[end] > '9');
  };
  const DeviceProfile* best = nullptr;
  for (const DeviceProfile& p : profiles) {
    if (!p.cuda) continue;
    bool is_it = true;
    for (std::string_view name = p.name; !name.empty();) {  // all words of "a100-80gb"
      const size_t end = std::min(name.find('-'), name.size());
      is_it = is_it && has(name.substr(0, end));
      name.remove_prefix(std::min(end + 1, name.size()));
    }
    if (is_it && (!best || std::string_view(p.name).size() > std::string_view(best->name).size())) best = &p;
  }
  if (best) return *best;
  const int capability = 10 * compute_major + compute_minor;
  return *find_device(capability == 80   ? "a100-40gb"
                      : capability == 87 ? "orin"
                      : capability < 89  ? "rtx3060"
                      : has("l40")       ? "l40s"
                      : capability < 90  ? "rtx4060"
                      : capability < 100 ? "h100"
                      : capability < 120 ? "b200"
                                         : "rtx5060ti");
}

DeviceProfile at_ceiling(DeviceProfile device) {
  device.mma_permille = device.wgmma_permille = 1000;
  if (device.fp32_permille > 0) device.fp32_permille = 1000;
  if (!device.cuda) device.product_permille = device.stream_permille = 1000;
  return device;
}

// The share of the peak that the arithmetic of a kind of op reaches if the kind has no share of its own.
static uint32_t share_of(const DeviceProfile& d, OpKind kind, Peak peak, const Cost& cost) {
  if (peak == Peak::fp32 && d.fp32_permille > 0) return d.fp32_permille;
  if (!is_attention(kind) || d.attention_permille == 0) return d.product_permille;
  return cost.head > 64 && d.wide_attention_permille > 0 ? d.wide_attention_permille : d.attention_permille;
}

uint64_t op_picoseconds(const DeviceProfile& d, OpKind kind, Peak peak, int threads, const Cost& cost) {
  // flop / (gflops · permille / 1000) gives nanoseconds; times 1000, picoseconds.
  const uint64_t lanes = d.cuda ? 1 : static_cast<uint64_t>(std::max(1, threads));
  const Calibration::Op& measured = d.calibration.ops[static_cast<size_t>(kind)];
  const uint32_t own = measured.permille;
  const uint32_t share = own ? own : share_of(d, kind, peak, cost);
  const unsigned __int128 speed =
      static_cast<unsigned __int128>(peak == Peak::fp32 ? d.gflops_fp32 : d.gflops_bf16) * lanes * share *
      (peak == Peak::mma     ? d.mma_permille
       : peak == Peak::wgmma ? d.wgmma_permille
                             : 1000);
  const uint64_t bandwidth = is_transfer(kind) ? d.host_gbytes_per_second : d.gbytes_per_second;
  const unsigned __int128 width = static_cast<unsigned __int128>(bandwidth) * (own ? own : d.stream_permille);
  const unsigned __int128 arithmetic = static_cast<unsigned __int128>(cost.flops) * 1000000000 / speed;
  const unsigned __int128 traffic = static_cast<unsigned __int128>(cost.bytes) * 1000000 / width;
  const unsigned __int128 before = static_cast<unsigned __int128>(cost.bytes_before) * 1000000 / width;
  return clamp(before + std::max(arithmetic, traffic) +
               static_cast<unsigned __int128>(own ? measured.launch_nanoseconds : d.launch_nanoseconds) *
                   (1 + cost.launches_before) * 1000);
}

}  // namespace stw
