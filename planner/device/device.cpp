#include "planner/device/device.h"

#include <algorithm>
#include <string>

namespace stw {

namespace {

constexpr uint64_t gib = uint64_t{1} << 30, mib = uint64_t{1} << 20;
// Sources of the figures. Memory, bandwidth, and dense peaks with fp32 accumulation are the vendor's. If a
// driver reports less total memory, the driver's figure is used. The bandwidth to the host is the vendor's,
// too: PCIe has 16 GB/s for eight lanes of the fourth generation; Orin and the CPU copy within their own
// memory.
//
// The share of Hopper's peak that mma.sync reaches: Luo et al., Benchmarking and Dissecting the Nvidia Hopper
// GPU Architecture (arXiv 2402.13499). The share for the B200 is an estimate. The shares of Hopper's peak
// that our wgmma kernels and attention reach are computed, not measured: from counts of instructions, tiles
// and bytes of GPT-2 124M at 1024 tokens. An H100 takes some 2050 ns a token with wgmma, 287 of them for
// attention.
//
// Shares of the peaks, the reserve and the launch time are estimates until a device has been calibrated.
// About the reserve: a context alone takes 3 MiB a multiprocessor (107 MiB on an RTX 4060 Ti, 256 on an RTX
// 3090, 426 on an RTX 6000 Ada, 555 on an RTX PRO 6000: ggml-org/llama.cpp #23604, invoke-ai/InvokeAI #9413,
// unslothai/unsloth-zoo #1053). Our kernels, CUDA graphs, and NVIDIA's libraries take more.
#define STW_SHEET(what) "NVIDIA, " what "; shares, reserve and launch are estimates"
constexpr const char* ampere =
    STW_SHEET("GA102 architecture whitepaper v2.1 and product page of the GeForce RTX 3060");
constexpr const char* ada =
    STW_SHEET("Ada GPU architecture whitepaper v2.1 and product pages of the GeForce RTX 40 series");
constexpr const char* blackwell_rtx =
    STW_SHEET("RTX Blackwell GPU architecture whitepaper and product pages of the GeForce RTX 50 series");
constexpr const char* a100 = STW_SHEET("A100 tensor core GPU data sheet");
constexpr const char* l4 = STW_SHEET("L4 tensor core GPU data sheet");
constexpr const char* l40s = STW_SHEET("L40S GPU data sheet");
constexpr const char* hopper = STW_SHEET(
    "H100 and H200 tensor core GPU data sheets") ", those of wgmma and attention are computed, not measured";
constexpr const char* blackwell = STW_SHEET("DGX B200 data sheet, per GPU");
constexpr const char* orin = STW_SHEET("Jetson AGX Orin series technical brief v1.2");
#undef STW_SHEET

constexpr DeviceProfile profiles[] = {
    {"cpu", "CPU", false, 0, 0, 100, 100, 22, 11, 850, 900, 8000, 64,
     "measured on a Zen 3 core at 3.5 GHz with AVX2 (peak and share of products per thread), two threads "
     "(bandwidth)"},
    {"rtx3060", "NVIDIA GeForce RTX 3060", true, 12 * gib, 600 * mib, 12700, 25500, 360, 32, 700, 850, 3000,
     256, ampere},
    {"rtx4060", "NVIDIA GeForce RTX 4060", true, 8 * gib, 600 * mib, 15100, 30200, 272, 16, 700, 850, 3000,
     256, ada},
    {"rtx4090", "NVIDIA GeForce RTX 4090", true, 24 * gib, 600 * mib, 82600, 165200, 1008, 32, 700, 850, 3000,
     256, ada},
    {"rtx5060ti", "NVIDIA GeForce RTX 5060 Ti", true, 16 * gib, 600 * mib, 23700, 47400, 448, 32, 700, 850,
     3000, 256, blackwell_rtx},
    {"rtx5090", "NVIDIA GeForce RTX 5090", true, 32 * gib, 800 * mib, 104800, 209500, 1792, 64, 700, 850,
     3000, 256, blackwell_rtx},
    {"a100-40gb", "NVIDIA A100 40GB", true, 40 * gib, 600 * mib, 19500, 312000, 1555, 32, 700, 850, 3000, 256,
     a100},
    {"a100-80gb", "NVIDIA A100 80GB", true, 80 * gib, 600 * mib, 19500, 312000, 2039, 32, 700, 850, 3000, 256,
     a100},
    {"l4", "NVIDIA L4", true, 23 * gib, 600 * mib, 30300, 121000, 300, 32, 700, 850, 3000, 256, l4},
    {"l40s", "NVIDIA L40S", true, 45 * gib, 600 * mib, 91600, 362000, 864, 32, 700, 850, 3000, 256, l40s},
    {"h100", "NVIDIA H100 SXM", true, 80 * gib, 1 * gib, 67000, 989000, 3350, 64, 650, 850, 3000, 256, hopper,
     629, true, 830, 280},
    {"h200", "NVIDIA H200 SXM", true, 140 * gib, 1 * gib, 67000, 989000, 4800, 64, 650, 850, 3000, 256,
     hopper, 629, true, 830, 280},
    {"b200", "NVIDIA B200", true, 178 * gib, 1 * gib, 75000, 2250000, 8000, 64, 600, 850, 3000, 256,
     blackwell, 500},
    {"orin", "NVIDIA Jetson AGX Orin 64GB", true, 60 * gib, 600 * mib, 5300, 42500, 204, 102, 600, 800, 5000,
     256, orin},
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
  std::string letters;  // "NVIDIA A100-SXM4-80GB" becomes "nvidiaa100sxm480gb"
  for (char c : driver_name) {
    if (c >= 'A' && c <= 'Z') letters += static_cast<char>(c - 'A' + 'a');
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) letters += c;
  }
  const DeviceProfile* best = nullptr;
  for (const DeviceProfile& p : profiles) {
    if (!p.cuda) continue;
    bool is_it = true;
    for (std::string_view name = p.name; !name.empty();) {  // all words of "a100-80gb"
      const size_t end = std::min(name.find('-'), name.size());
      is_it = is_it && letters.find(name.substr(0, end)) != std::string::npos;
      name.remove_prefix(std::min(end + 1, name.size()));
    }
    if (is_it && (!best || std::string_view(p.name).size() > std::string_view(best->name).size())) best = &p;
  }
  if (best) return *best;
  const int capability = 10 * compute_major + compute_minor;
  return *find_device(capability == 80   ? "a100-40gb"
                      : capability == 87 ? "orin"
                      : capability < 89  ? "rtx3060"
                      : capability < 90  ? "rtx4060"
                      : capability < 100 ? "h100"
                      : capability < 120 ? "b200"
                                         : "rtx5060ti");
}

uint64_t op_picoseconds(const DeviceProfile& d, OpKind kind, Peak peak, int threads, const Cost& cost) {
  // flop / (gflops · permille / 1000) gives nanoseconds; times 1000, picoseconds.
  const uint64_t lanes = d.cuda ? 1 : static_cast<uint64_t>(std::max(1, threads));
  const Calibration::Op& measured = d.calibration.ops[static_cast<size_t>(kind)];
  const uint32_t own = measured.permille;
  const uint32_t share = own                                          ? own
                         : is_attention(kind) && d.attention_permille ? d.attention_permille
                                                                      : d.product_permille;
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
