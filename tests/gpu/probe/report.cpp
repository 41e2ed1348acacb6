#include "tests/gpu/probe/report.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <set>

#include "tests/gpu/probe/card.h"
#include "tests/gpu/probe/expectations.h"

namespace stw::probe {

std::string text_of(const char* format, ...) {
  char text[1024];
  va_list words;
  va_start(words, format);
  std::vsnprintf(text, sizeof text, format, words);
  va_end(words);
  return text;
}

// Prefixes of lines for the watching process. All other lines are shown unchanged.
static const std::string begins = "\x01part ", row_is = "\x01row ", peaks_are = "\x01peaks ",
                         share_is = "\x01share ", figure_is = "\x01figure ",
                         warpgroups_are = "\x01warpgroups ";
static std::string row_text(const char* result, const std::string& name, const std::string& text) {
  return text_of("%-4s  %-50s  ", result, name.c_str()) + text;
}

void Report::line(const std::string& text) {
  const std::string whole = text + "\n";
  for (size_t at = 0; at < whole.size();) {
    const ssize_t written = write(descriptor_, whole.data() + at, whole.size() - at);
    if (written <= 0) _exit(4);  // the watching process is gone
    at += static_cast<size_t>(written);
  }
}
void Report::begin(const std::string& part) { line(begins + part); }
void Report::row(bool good, const std::string& name, const std::string& text) {
  line(row_is + (good ? "ok" : "FAIL") + "\t" + name + "\t" + text);
}
void Report::note(const std::string& name, const std::string& text) {
  line(row_is + "\t" + name + "\t" + text);
}
void Report::figure(const std::string& name, double value) {
  line(figure_is + name + text_of("\t%.17g", value));
}
void Report::uses_warpgroups(bool uses) {
  if (uses == uses_warpgroups_) return;
  uses_warpgroups_ = uses;
  line(warpgroups_are + (uses ? "1" : "0"));
  if (uses && options_.crash == "wgmma") std::abort();
  if (uses && options_.hang == "wgmma") pause();
}
void Report::peaks(const Peaks& peaks) {
  line(peaks_are + text_of("%.17g %.17g", peaks.copy_bytes, peaks.product_flops));
}
void Report::share(const std::string& kind, double nanoseconds) {
  line(share_is + text_of("%.17g ", nanoseconds) + kind);
}

namespace {

using Clock = std::chrono::steady_clock;

class Watcher {
 public:
  Watcher(const Options& options, const std::vector<Part>& parts)
      : options_(options), parts_(parts), begin_(Clock::now()) {
    open(options.file, "w", file_);
    open(options.figures, "a", figures_);
  }
  ~Watcher() {
    for (std::FILE* file : {file_, figures_})
      if (file) std::fclose(file);
  }
  Watcher(const Watcher&) = delete;

  int run() {
    while (next_ < parts_.size()) {
      if (is_over()) {
        row("ok", parts_[next_++].name, "left out: no time");
        continue;
      }
      if (const int status = run_from(next_); status == no_device) return status;
    }
    show("");
    show("All results, the parts after each other");
    for (const std::string& row : rows_) show(row);
    sum_up();
    show(text_of("%d of %zu results are wrong; %.0f s", failures_, rows_.size(), seconds()));
    return failures_ > 0 || rows_.empty() ? 1 : 0;
  }

 private:
  static constexpr int no_device = 77;
  static void open(const std::string& path, const char* mode, std::FILE*& file) {
    if (!path.empty() && !(file = std::fopen(path.c_str(), mode))) std::perror(path.c_str());
  }
  static double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  double seconds() const { return since(begin_); }

  bool is_over() const { return seconds() > options_.seconds - 2; }

  void show(const std::string& line) {
    for (std::FILE* file : {stdout, file_})
      if (file) {
        std::fprintf(file, "%s\n", line.c_str());
        std::fflush(file);
      }
  }
  // A part that is repeated without wgmma does not show its earlier rows again.
  void row(const std::string& result, const std::string& name, const std::string& text) {
    if (result == "ok" && !shown_.insert(name).second) return;
    rows_.push_back(row_text(result.c_str(), name, text));
    failures_ += result == "FAIL";
    show(rows_.back());
  }
  void figure(const std::string& line) {
    if (!figures_) return;
    std::fprintf(figures_, "%s\n", line.c_str());
    std::fflush(figures_);
  }
  std::string running() const {
    return (next_ == 0 ? "the device" : parts_[next_ - 1].name) + (in_warpgroups_ ? ", wgmma" : "");
  }

  void take(const std::string& line) {
    double a = 0, b = 0;
    int at = 0;
    heard_ = Clock::now();
    if (line.starts_with(begins)) {
      if (!repeats_) shown_.clear();
      ++next_, part_began_ = Clock::now(), in_warpgroups_ = repeats_ = false;
    } else if (line.starts_with(warpgroups_are)) in_warpgroups_ = line.ends_with("1");
    else if (line.starts_with(figure_is)) figure(line.substr(figure_is.size()));
    else if (line.starts_with(row_is)) {
      const size_t name = line.find('\t') + 1, text = line.find('\t', name) + 1;
      row(line.substr(row_is.size(), name - 1 - row_is.size()), line.substr(name, text - 1 - name),
          line.substr(text));
    } else if (line.starts_with(peaks_are) &&
               std::sscanf(line.c_str() + peaks_are.size(), "%lf %lf", &a, &b) == 2)
      peaks_ = {a, b};
    else if (line.starts_with(share_is) &&
             std::sscanf(line.c_str() + share_is.size(), "%lf %n", &a, &at) == 1)
      shares_[line.substr(share_is.size() + static_cast<size_t>(at))] += a;
    else show(line);
  }

  // Runs in the child process.
  [[noreturn]] void run_here(size_t first, int descriptor) {
    Report report(descriptor, options_);
    if (!has_device()) _exit(no_device);
    choose_device();
    if (no_warpgroups_) forbid_warpgroups();
    for (size_t i = first; i < parts_.size(); ++i) {
      const std::string& name = parts_[i].name;
      report.begin(name);
      if (is_over()) {
        report.row(true, name, "left out: no time");
        continue;
      }
      if (name == options_.crash) std::abort();
      if (name == options_.hang) pause();
      try {
        parts_[i].run(report, options_, peaks_);
        report.uses_warpgroups(false);
      } catch (const std::exception& error) {  // the device is lost or out of memory
        report.row(false, name, error.what());
        _exit(3);
      }
    }
    _exit(0);
  }

  int run_from(size_t first) {
    int ends[2];
    if (pipe(ends) != 0) std::perror("pipe"), std::exit(1);
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) std::perror("fork"), std::exit(1);
    if (child == 0) {
      close(ends[0]);
      run_here(first, ends[1]);
    }
    close(ends[1]);
    const size_t before = next_;
    part_began_ = heard_ = Clock::now();
    const bool hangs = !listen(ends[0]);
    const bool is_cut = hangs && seconds() > options_.seconds;
    if (hangs) kill(child, SIGKILL);
    const int status = status_of(child, hangs);
    close(ends[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == no_device) {
      show("no CUDA device: this program needs one");
      return no_device;
    }
    const std::string name = running();
    const bool fails = (hangs && !is_cut) || (!hangs && status != 0);
    if (is_cut) row("cut", name, "cut off: no time");
    else if (hangs) row("FAIL", name, "ran past its time");
    else if (WIFSIGNALED(status)) row("FAIL", name, text_of("ended by signal %d", WTERMSIG(status)));
    else if (status != 0 && WEXITSTATUS(status) != 3)
      row("FAIL", name, text_of("ended with %d", WEXITSTATUS(status)));
    if (next_ == before) {  // not even the first part began
      row("FAIL", "the device", "no part begins");
      next_ = parts_.size();
    } else if (fails && in_warpgroups_) {
      figure("values wgmma\t0");
      show("      No kernel with wgmma runs from now on.");
      no_warpgroups_ = repeats_ = true;
      --next_;  // repeats the part
    }
    in_warpgroups_ = false;
    return 0;
  }

  // Takes the lines of the child process. Returns false if it hangs, or if no time is left.
  bool listen(int descriptor) {
    std::string text;
    for (;;) {
      double left = std::min(options_.part_seconds - since(part_began_), options_.seconds + 3 - seconds());
      if (in_warpgroups_ && !options_.small) left = std::min(left, options_.wgmma_seconds - since(heard_));
      struct pollfd wanted = {descriptor, POLLIN, 0};
      const int ready = left > 0 ? poll(&wanted, 1, static_cast<int>(left * 1000) + 1) : 0;
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return false;
      char buffer[4096];
      const ssize_t count = read(descriptor, buffer, sizeof buffer);
      if (count <= 0) return true;
      text.append(buffer, static_cast<size_t>(count));
      for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
        take(text.substr(0, end));
    }
  }

  // Waits for the child process. One that hangs in the driver may survive SIGKILL: after five seconds the
  // others go on without it.
  int status_of(pid_t child, bool is_killed) {
    int status = 0;
    const Clock::time_point begin = Clock::now();
    for (;;) {
      const pid_t ended = waitpid(child, &status, is_killed ? WNOHANG : 0);
      if (ended == child) return status;
      if (ended < 0 && errno != EINTR) return 0;
      if (is_killed && since(begin) > 5) {
        row("FAIL", running(),
            text_of("process %d did not end within 5 s of SIGKILL", static_cast<int>(child)));
        return 0;
      }
      if (is_killed) usleep(10'000);
    }
  }

  // Prints the table of expected speeds with the measured ones.
  void sum_up() {
    if (shares_.empty()) return;
    show("");
    show(
        "Nanoseconds that a token of GPT-2 124M spends in products and attention; expected and pessimistic "
        "as reckoned for an H100");
    double all = 0, expected = 0, pessimistic = 0;
    bool whole = true;
    for (const Expectation& e : expectations) {
      const auto found = shares_.find(e.kind);
      if (found == shares_.end()) {
        whole = false;
        continue;
      }
      all += found->second, expected += e.expected, pessimistic += e.pessimistic;
      show(text_of("      %-42s %7.0f   expected %4.0f, pessimistic %4.0f   %6.0f TFLOP/s", e.what,
                   found->second, e.expected, e.pessimistic, e.flops / found->second * 1e-3));
    }
    show(text_of("      %-42s %7.0f   expected %4.0f, pessimistic %4.0f%s", "together", all, expected,
                 pessimistic, whole ? "" : ", not all were measured"));
  }

  const Options& options_;
  const std::vector<Part>& parts_;
  const Clock::time_point begin_;
  Clock::time_point part_began_, heard_;  // heard_: when the child process last wrote a line
  std::FILE *file_ = nullptr, *figures_ = nullptr;
  std::vector<std::string> rows_;
  std::set<std::string> shown_;  // names of the part's rows that are right
  std::map<std::string, double> shares_;
  Peaks peaks_;
  size_t next_ = 0;  // number of parts that have begun
  int failures_ = 0;
  bool in_warpgroups_ = false;  // kernels with wgmma run
  bool no_warpgroups_ = false;  // they failed
  bool repeats_ = false;        // the next part that begins is a repeated one
};

}  // namespace

int run_parts(const Options& options, const std::vector<Part>& parts) {
  if (!options.here) return Watcher(options, parts).run();
  if (!has_device()) return std::puts("no CUDA device: this program needs one"), 77;
  choose_device();
  Report report(STDOUT_FILENO, options);
  Peaks peaks;
  for (const Part& part : parts) part.run(report, options, peaks);
  return 0;
}

}  // namespace stw::probe
