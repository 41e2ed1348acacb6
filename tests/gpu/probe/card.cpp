#include "tests/gpu/probe/card.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace stw::probe {

static constexpr uint64_t guard = 256;

bool has_device() {
  int count = 0;
  const bool found = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  static_cast<void>(cudaGetLastError());
  return found && kernels::cuda_table() != nullptr;
}
void choose_device() { check(cudaSetDevice(0), "the device"); }
static bool warpgroups_are_forbidden = false;
void forbid_warpgroups() { warpgroups_are_forbidden = true; }
bool has_warpgroups() {
  if (warpgroups_are_forbidden) return false;
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
  return kernels::has_warpgroup_kernels() && major == 9 && minor == 0;
}
void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}
void finish(const char* what) {
  check(cudaGetLastError(), what);
  check(cudaDeviceSynchronize(), what);
}

Memory::Memory(uint64_t bytes) : bytes_(bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, (bytes + guard + 255) / 256 * 256),
        ("memory of " + std::to_string(bytes) + " bytes").c_str());
  data_ = static_cast<std::byte*>(memory);
  check(cudaMemsetAsync(data_ + bytes_, 0xa5, guard, nullptr), "the guard");
}
Memory::Memory(std::span<const std::byte> contents) : Memory(contents.size()) {
  check(cudaMemcpy(data_, contents.data(), contents.size(), cudaMemcpyHostToDevice), "a copy to the device");
}
Memory::~Memory() {
  if (data_) cudaFree(data_);
}
void Memory::poison() {
  if (bytes_ > 0) check(cudaMemsetAsync(data_, 0xff, bytes_, nullptr), "poison");
}
void Memory::fill(const Memory& from, uint64_t begin) {
  for (uint64_t at = 0; at < bytes_;) {
    const uint64_t bytes = std::min(bytes_ - at, from.bytes() - begin);
    check(cudaMemcpyAsync(data_ + at, from.data() + begin, bytes, cudaMemcpyDeviceToDevice, nullptr),
          "a copy on the device");
    at += bytes;
  }
}
void Memory::copy_to_host(void* to, uint64_t bytes, uint64_t first) const {
  if (first + bytes > bytes_) throw std::logic_error("more is read than there is");
  check(cudaMemcpy(to, data_ + first, bytes, cudaMemcpyDeviceToHost), "a copy to the host");
}
bool Memory::is_guard_whole() const {
  if (!data_) return true;
  unsigned char bytes[guard];
  check(cudaMemcpy(bytes, data_ + bytes_, guard, cudaMemcpyDeviceToHost), "the guard");
  return std::all_of(bytes, bytes + guard, [](unsigned char b) { return b == 0xa5; });
}

uint64_t random_bits(uint64_t& state) {  // splitmix64
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
uint16_t bf16_of(float value) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

// Draws from a table of normal numbers. Box-Muller for hundreds of millions of numbers would take seconds of
// device time.
Noise::Noise(uint64_t count) : host_((count + 3) / 4 * 4) {
  uint64_t state = 1;
  const auto uniform = [&] { return (static_cast<double>(random_bits(state) >> 11) + 0.5) * 0x1p-53; };
  std::vector<uint16_t> table(1 << 16);
  for (uint16_t& number : table)
    number = bf16_of(
        static_cast<float>(std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform())));
  for (size_t i = 0; i < host_.size(); i += 4) {
    uint64_t bits = random_bits(state);
    for (size_t j = 0; j < 4; ++j, bits >>= 16) host_[i + j] = table[bits & 0xffff];
  }
  device_ = Memory::of(host_);
}
const uint16_t* Noise::device(uint64_t first, uint64_t count) const {
  if (first + count > host_.size()) throw std::logic_error("too few random numbers");
  return device_.as<uint16_t>() + first;
}

void Calls::prepare(uint64_t workspace) {
  if (workspace_.bytes() != workspace || !workspace_.data()) workspace_ = Memory(workspace);
  workspace_.poison();
}
void Calls::throw_overrun(const char* what) {
  throw std::runtime_error(std::string(what) + ": wrote past its scratch memory");
}

double Calls::seconds_of(const std::function<void()>& call, const char* what, bool small) {
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "an event");
  check(cudaEventCreate(&end), "an event");
  const auto measure = [&](int rounds) {
    float milliseconds = 0;
    check(cudaEventRecord(begin, nullptr), what);
    for (int i = 0; i < rounds; ++i) call();
    check(cudaEventRecord(end, nullptr), what);
    finish(what);
    check(cudaEventElapsedTime(&milliseconds, begin, end), what);
    return static_cast<double>(milliseconds) * 1e-3 / rounds;
  };
  double seconds = measure(1);
  if (!small) {
    const double wanted = 10e-3 / std::max(seconds, 1e-6);
    seconds = measure(static_cast<int>(std::clamp(wanted, 2.0, 50.0)));
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return std::max(seconds, 1e-9);
}

void Error::add(double value, double reference, double limit) {
  const double difference = std::isfinite(value) ? std::fabs(value - reference) : INFINITY;
  largest = std::max(largest, difference);
  scale = std::max(scale, std::fabs(reference));
  within = within && difference <= limit;
}

uint64_t poisoned(std::span<const uint16_t> values) {
  return static_cast<uint64_t>(std::count(values.begin(), values.end(), uint16_t{0xffff}));
}
uint64_t poisoned(std::span<const float> values) {
  return static_cast<uint64_t>(std::count_if(
      values.begin(), values.end(), [](float x) { return __builtin_bit_cast(uint32_t, x) == 0xffffffffu; }));
}

std::string rate_of_product(double flops, double seconds, const Peaks& peaks) {
  std::string text = text_of("%.3g TFLOP/s", flops / seconds * 1e-12);
  if (peaks.product_flops > 0)
    text += text_of(" (%.0f %% of the peak)", 100 * flops / seconds / peaks.product_flops);
  return text;
}
std::string rate_of_bytes(double bytes, double seconds, const Peaks& peaks, double expected_share) {
  std::string text = text_of("%.3g TB/s", bytes / seconds * 1e-12);
  if (peaks.copy_bytes > 0)
    text += text_of(" (%.0f %% of a copy, expected %.0f)", 100 * bytes / seconds / peaks.copy_bytes,
                    100 * expected_share);
  return text;
}

}  // namespace stw::probe
