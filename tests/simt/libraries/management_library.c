/* Replaces the driver's libnvidia-ml.so.1 in the tests of its loader: a card with four processes. Types as in
 * nvml.h. */
#include <stdio.h>
#include <string.h>

typedef struct {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
} process;

static int users;

int nvmlInit_v2(void) { return users++ < 0; }
int nvmlShutdown(void) { return --users < 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** card) {
  *card = &users;
  return strcmp(bus_id, "0000:19:00.0") == 0 ? 0 : 6;
}
static int list(void* card, const process* from, unsigned n, unsigned* count, process* to) {
  if (card != &users || users != 1 || *count < n) return 7;
  memcpy(to, from, n * sizeof *from);
  *count = n;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* card, unsigned* count, process* to) {
  static const process found[] = {{7, 1000, 0, 0}, {4000000000u, 5ull << 32, 0, 0}, {9, ~0ull, 0, 0}};
  return list(card, found, 3, count, to);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void* card, unsigned* count, process* to) {
  static const process found[] = {{7, 1000, 0, 0}, {8, 2000, 0, 0}};
  return list(card, found, 2, count, to);
}
int nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  if (pid == 8) return 6;
  return snprintf(name, length, pid == 7 ? "/usr/lib/xorg/Xorg" : "python3") < 0;
}
int nvmlDeviceGetMemoryInfo(void* card, unsigned long long memory[3]) {
  if (card != &users || users != 1) return 7;
  memory[0] = 24ull << 30, memory[1] = 17ull << 30, memory[2] = 7ull << 30; /* total, free, used */
  return 0;
}
