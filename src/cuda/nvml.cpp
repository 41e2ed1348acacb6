#include "src/cuda/nvml.h"

#include "src/cuda/shared_library.h"

namespace stw::cuda {

namespace {

// As nvml.h has them (nvmlProcessInfo_t of the functions that end in _v3).
using Card = struct nvmlDevice_st*;
struct Process { unsigned pid; unsigned long long bytes; unsigned gpu_instance, compute_instance; };
constexpr int success = 0;
constexpr auto unknown_bytes = ~0ull;   // where the driver does not count, as under Windows'

struct Functions {
  int (*init)();
  int (*shutdown)();
  int (*card_at)(const char* bus_id, Card* card);
  int (*compute_processes)(Card card, unsigned* count, Process* processes);
  int (*graphics_processes)(Card card, unsigned* count, Process* processes);
  int (*name_of)(unsigned pid, char* name, unsigned length);
};

bool load(Functions& f) {
  const auto at = [](auto& function) { return reinterpret_cast<void**>(&function); };
  return !!load_functions({"NVML", {"libnvidia-ml.so.1"}, ""},
                          {{"nvmlInit_v2", at(f.init)}, {"nvmlShutdown", at(f.shutdown)}, {"nvmlDeviceGetHandleByPciBusId_v2", at(f.card_at)},
                           {"nvmlDeviceGetComputeRunningProcesses_v3", at(f.compute_processes)},
                           {"nvmlDeviceGetGraphicsRunningProcesses_v3", at(f.graphics_processes)}, {"nvmlSystemGetProcessName", at(f.name_of)}});
}

MemoryHolder holder_of(const Functions& f, const Process& process) {
  char path[256] = {};
  if (f.name_of(process.pid, path, sizeof path) != success) path[0] = 0;
  path[sizeof path - 1] = 0;
  const std::string text = path;
  return {process.pid, process.bytes, text.substr(text.find_last_of('/') + 1)};
}

}  // namespace

std::vector<MemoryHolder> memory_holders(const std::string& bus_id) {
  std::vector<MemoryHolder> holders;
  Functions f{};
  if (!load(f) || f.init() != success) return holders;
  Card card = nullptr;
  if (f.card_at(bus_id.c_str(), &card) == success)
    for (const auto list : {f.compute_processes, f.graphics_processes}) {   // a process may be in both
      std::vector<Process> processes(256);
      auto count = static_cast<unsigned>(processes.size());
      if (list(card, &count, processes.data()) != success) continue;
      processes.resize(count < processes.size() ? count : processes.size());
      for (const Process& process : processes) {
        bool is_known = process.bytes == unknown_bytes;
        for (const MemoryHolder& holder : holders) is_known |= holder.process == process.pid;
        if (!is_known) holders.push_back(holder_of(f, process));
      }
    }
  f.shutdown();
  return holders;
}

}  // namespace stw::cuda
