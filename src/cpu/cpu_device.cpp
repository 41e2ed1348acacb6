// The CPU as a device: its memory is the host's, and all work is done when a call returns.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "src/device/device.h"
#include "src/device/machine.h"
#include "src/execute/execute.h"

namespace stw {

namespace {

class CpuStream : public Stream {
 public:
  CpuStream(const kernels::Table& table, std::unique_ptr<ThreadPool> pool)
      : table_(table), pool_(std::move(pool)) {}
  Status load(const Numerics&) override { return ok(); }
  void bind(Execution& execution) const override {
    execution.table = &table_;
    execution.parallel = pool_->parallel();
  }
  std::byte* on_host(std::byte* memory) const override { return memory; }
  void upload(void* to, const void* from, uint64_t bytes) override { std::memcpy(to, from, bytes); }
  Status download(void* to, const void* from, uint64_t bytes) override {
    std::memcpy(to, from, bytes);
    return ok();
  }
  void zero(void* to, uint64_t bytes) override { std::memset(to, 0, bytes); }
  void move(void* to, const void* from, uint64_t bytes) override { std::memmove(to, from, bytes); }
  Status prepare(const Execution&, const Program&) override { return ok(); }
  Status run(const Execution& execution, const Program& program) override {
    execute(execution, program);
    return ok();
  }
  Status finish_programs() override { return ok(); }
  Status run_timed(const Execution& execution, const Program& program, float* seconds) override {
    execute_timed(execution, program, seconds);
    return ok();
  }
  void forget() override {}
  Status wait() override { return ok(); }

 private:
  const kernels::Table& table_;
  std::unique_ptr<ThreadPool> pool_;
};

class CpuDevice : public Device {
 public:
  CpuDevice(const DeviceOptions& options, const kernels::Table& table) : Device(options), table_(table) {}

  DeviceInfo info() const override {
    DeviceInfo info;
    info.name = processor_name();
    info.memory_total = system_memory().total;
    info.threads = options_.threads;
    info.isa = options_.isa;
    return info;
  }
  FreeMemory memory_free() const override { return {system_memory().available}; }

  Result<std::unique_ptr<Stream>> make_stream(int threads) const override {
    STW_ASSIGN(pool, make_pool(std::min(threads, options_.threads)));
    return std::unique_ptr<Stream>(std::make_unique<CpuStream>(table_, std::move(pool)));
  }

  // Without a host's allocator, memory is mapped in whole pages, so that a resize needs no copy.
  Allocation allocate(size_t bytes, size_t alignment) const override {
    if (options_.allocate) return {options_.allocate(options_.memory_user, bytes, alignment, nullptr)};
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return {};
#ifdef MADV_HUGEPAGE
    // Products walk down columns of matrices, and each row lies on another page. Systems without huge pages
    // ignore this hint.
    ::madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return {memory};
  }
  void release(void* memory, size_t bytes) const override {
    if (!memory) return;
    if (options_.release) options_.release(options_.memory_user, memory, bytes, nullptr);
    else ::munmap(memory, bytes);
  }
  Resized resize(void*& memory, size_t old_bytes, size_t bytes, size_t kept,
                 size_t alignment) const override {
#ifdef __linux__
    if (!options_.allocate) {
      void* moved = ::mremap(memory, old_bytes, bytes, MREMAP_MAYMOVE);
      if (moved == MAP_FAILED) return {};
      memory = moved;
      return {true};
    }
#endif
    void* other = allocate(bytes, alignment).memory;
    if (!other) return {};
    if (reinterpret_cast<uintptr_t>(other) % alignment != 0) {
      release(other, bytes);
      return {};
    }
    std::memcpy(other, memory, kept);
    release(memory, old_bytes);
    memory = other;
    return {true};
  }
  Allocation allocate_host(size_t bytes, size_t alignment) const override {
    return allocate(bytes, alignment);
  }
  void release_host(void* memory, size_t bytes) const override { release(memory, bytes); }
  uint64_t host_memory_free() const override { return system_memory().available; }

 private:
  const kernels::Table& table_;
};

}  // namespace

Result<std::unique_ptr<Device>> open_cpu(const DeviceOptions& options) {
  DeviceOptions chosen = options;
  if (options.threads == 0) chosen.threads = processor_count();
  if (options.choose_isa) chosen.isa = kernels::best_isa();
  const kernels::Table* table = kernels::cpu_table(chosen.isa);
  if (!table)
    return Error{Code::unsupported, "device: this build or processor lacks the instruction set asked for"};
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>(chosen, *table));
}

}  // namespace stw
