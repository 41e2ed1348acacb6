// What gpu_probe says: a line for each result, written at once, and a table of all of them at the end.
//
// Every part of the probe runs in a process that a first one watches, which never touches the device. What breaks the device or hangs
// ends that process alone: the part fails by name, and a new process goes on with the next one.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace stw::probe {

struct Options {
  bool small = false;                // sizes for an emulated device
  double seconds = 60;               // for all parts together; what there is no time for is left out by name
  double part_seconds = 25;          // for one part
  std::string file;                  // gets the same lines; empty: none
  bool here = false;                 // in this process, which nobody watches: for profilers and debuggers
  std::string crash, hang;           // parts that do so, to see that the others still run
};

// What the card reaches by itself; 0 where nobody knows.
struct Peaks { double copy_bytes = 0, product_flops = 0; };   // per second

// What a part says. Lines go to the process that watches.
class Report {
 public:
  explicit Report(int descriptor) : descriptor_(descriptor) {}
  void begin(const std::string& part);
  // A result: whether bits or values are right, and figures.
  void row(bool good, const std::string& name, const std::string& text);
  // A figure without anything that could be wrong.
  void note(const std::string& name, const std::string& text);
  // For parts that run in another process than the one that measured them.
  void peaks(const Peaks& peaks);
  // Summed up by kind at the end: nanoseconds that a token of GPT-2 124M spends there.
  void share(const std::string& kind, double nanoseconds);

 private:
  void line(const std::string& text);
  int descriptor_;
};

struct Part {
  std::string name;
  std::function<void(Report&, const Options&, Peaks&)> run;
};

// Runs the parts. The result is the exit status: 0 where all is right, 1 where bits or values are not, 77 where no device is there.
int run_parts(const Options& options, const std::vector<Part>& parts);

std::string text_of(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace stw::probe
