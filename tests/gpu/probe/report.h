// The output of gpu_probe: one line for each result, written at once, and a table of all results at the end.
//
// Every part runs in a child process. The parent watches it and never uses the device. If a part breaks the
// device or hangs, only that process ends: the part is reported as failed, and a new process continues with
// the next part. If kernels with wgmma were running, a new process repeats the part without them, and no
// later part uses them. So a fault of wgmma costs no other kernel its figures.
//
// A part that the end of all time interrupts is cut off. It has not failed.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace stw::probe {

struct Options {
  bool small = false;        // sizes for an emulated device
  double seconds = 60;       // for all parts together; parts without time are named as left out
  double part_seconds = 25;  // for one part
  // Seconds without a result after which kernels with wgmma hang. Not on an emulated device, which is slow.
  double wgmma_seconds = 10;
  std::string file;     // receives the same lines; may be empty
  std::string figures;  // receives a line `name<tab>value` for each figure; may be empty
  // in this process, without a watching parent: for profilers and debuggers
  bool here = false;
  // Names of parts that crash or hang, to test that the others still run. The name `wgmma` stands for all
  // kernels with wgmma.
  std::string crash, hang;
};

// The card's own peaks; 0: unknown.
struct Peaks {
  double copy_bytes = 0, product_flops = 0;
};  // per second

// Reports results of a part to the watching process.
class Report {
 public:
  explicit Report(int descriptor, const Options& options) : descriptor_(descriptor), options_(options) {}
  void begin(const std::string& part);
  // A result with a check: whether bits or values are right, and figures.
  void row(bool good, const std::string& name, const std::string& text);
  // A figure without a check.
  void note(const std::string& name, const std::string& text);
  // A number that tests/gpu/decisions.py reads.
  void figure(const std::string& name, double value);
  // Whether the results of a kind of kernels are right: the figure `values KIND`, 0 or 1.
  void values(const char* kind, bool good) { figure(std::string("values ") + kind, good ? 1 : 0); }
  // Announces that kernels with wgmma run from now on, or no longer.
  void uses_warpgroups(bool uses);
  // Passes the peaks on to parts in other processes.
  void peaks(const Peaks& peaks);
  // Adds time of a kind for the table at the end, in nanoseconds per token of GPT-2 124M.
  void share(const std::string& kind, double nanoseconds);

 private:
  void line(const std::string& text);
  int descriptor_;
  const Options& options_;
  bool uses_warpgroups_ = false;
};

struct Part {
  std::string name;
  std::function<void(Report&, const Options&, Peaks&)> run;
};

// Runs the parts. Returns the exit status: 0 if all is right, 1 if bits or values are wrong, 77 if there is
// no device.
int run_parts(const Options& options, const std::vector<Part>& parts);

std::string text_of(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace stw::probe
