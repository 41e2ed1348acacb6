#include "src/cuda/nvml.h"

#include "src/cuda/shared_library.h"

namespace stw::cuda {

namespace {

// Layouts from nvml.h (nvmlProcessInfo_t of the functions that end in _v3, nvmlMemory_t).
using Card = struct nvmlDevice_st*;
struct Process {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};
constexpr int success = 0;
constexpr auto unknown_bytes = ~0ull;  // where the driver does not count, as on Windows

struct Memory {
  unsigned long long total, free, used;
};

// Keeps the library initialised for its lifetime, with one card.
class Session {
 public:
  explicit Session(const std::string& bus_id) {
    is_begun_ = load() && init_() == success;
    is_there_ = is_begun_ && card_at_(bus_id.c_str(), &card) == success;
  }
  ~Session() {
    if (is_begun_) shutdown_();
  }
  Session(const Session&) = delete;
  explicit operator bool() const { return is_there_; }

  Card card = nullptr;
  int (*compute_processes)(Card card, unsigned* count, Process* processes) = nullptr;
  int (*graphics_processes)(Card card, unsigned* count, Process* processes) = nullptr;
  int (*name_of)(unsigned pid, char* name, unsigned length) = nullptr;
  int (*memory_of)(Card card, Memory* memory) = nullptr;

 private:
  bool load() {
    const auto at = [](auto& function) { return reinterpret_cast<void**>(&function); };
    return !!load_functions({"NVML", {"libnvidia-ml.so.1"}, ""},
                            {{"nvmlInit_v2", at(init_)},
                             {"nvmlShutdown", at(shutdown_)},
                             {"nvmlDeviceGetHandleByPciBusId_v2", at(card_at_)},
                             {"nvmlDeviceGetComputeRunningProcesses_v3", at(compute_processes)},
                             {"nvmlDeviceGetGraphicsRunningProcesses_v3", at(graphics_processes)},
                             {"nvmlSystemGetProcessName", at(name_of)},
                             {"nvmlDeviceGetMemoryInfo", at(memory_of)}});
  }
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*card_at_)(const char* bus_id, Card* card) = nullptr;
  bool is_begun_ = false, is_there_ = false;
};

MemoryHolder holder_of(const Session& nvml, const Process& process) {
  char path[256] = {};
  if (nvml.name_of(process.pid, path, sizeof path) != success) path[0] = 0;
  path[sizeof path - 1] = 0;
  const std::string text = path;
  return {process.pid, process.bytes, text.substr(text.find_last_of('/') + 1)};
}

}  // namespace

std::vector<MemoryHolder> memory_holders(const std::string& bus_id) {
  std::vector<MemoryHolder> holders;
  const Session nvml(bus_id);
  if (!nvml) return holders;
  for (const auto list : {nvml.compute_processes, nvml.graphics_processes}) {  // a process may be in both
    std::vector<Process> processes(256);
    auto count = static_cast<unsigned>(processes.size());
    if (list(nvml.card, &count, processes.data()) != success) continue;
    processes.resize(count < processes.size() ? count : processes.size());
    for (const Process& process : processes) {
      bool is_known = process.bytes == unknown_bytes;
      for (const MemoryHolder& holder : holders) is_known |= holder.process == process.pid;
      if (!is_known) holders.push_back(holder_of(nvml, process));
    }
  }
  return holders;
}

std::optional<uint64_t> memory_used(const std::string& bus_id) {
  const Session nvml(bus_id);
  Memory memory{};
  if (!nvml || nvml.memory_of(nvml.card, &memory) != success) return {};
  return memory.used;
}

}  // namespace stw::cuda
