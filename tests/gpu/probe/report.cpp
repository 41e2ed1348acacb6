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
static const std::string begins = "\x01part ", peaks_are = "\x01peaks ", share_is = "\x01share ";

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
  line(text_of("%-4s  %-50s ", good ? "ok" : "FAIL", name.c_str()) + text);
}
void Report::note(const std::string& name, const std::string& text) {
  line(text_of("      %-50s ", name.c_str()) + text);
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
    if (!options.file.empty() && !(file_ = std::fopen(options.file.c_str(), "w")))
      std::perror(options.file.c_str());
  }
  ~Watcher() {
    if (file_) std::fclose(file_);
  }
  Watcher(const Watcher&) = delete;

  int run() {
    while (next_ < parts_.size()) {
      if (is_over()) {
        row(text_of("ok    %-50s left out: no time", parts_[next_++].name.c_str()));
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
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  bool is_over() const { return seconds() > options_.seconds - 2; }

  void show(const std::string& line) {
    for (std::FILE* file : {stdout, file_})
      if (file) {
        std::fprintf(file, "%s\n", line.c_str());
        std::fflush(file);
      }
  }
  void row(const std::string& line) {
    rows_.push_back(line);
    failures_ += line.starts_with("FAIL");
    show(line);
  }
  void fail(const std::string& name, const std::string& why) {
    row(text_of("FAIL  %-50s ", name.c_str()) + why);
  }
  std::string running() const { return next_ == 0 ? "the device" : parts_[next_ - 1].name; }

  void take(const std::string& line) {
    double a = 0, b = 0;
    int at = 0;
    if (line.starts_with(begins)) ++next_, part_began_ = Clock::now();
    else if (line.starts_with(peaks_are) &&
             std::sscanf(line.c_str() + peaks_are.size(), "%lf %lf", &a, &b) == 2)
      peaks_ = {a, b};
    else if (line.starts_with(share_is) &&
             std::sscanf(line.c_str() + share_is.size(), "%lf %n", &a, &at) == 1)
      shares_[line.substr(share_is.size() + static_cast<size_t>(at))] += a;
    else row(line);
  }

  // Runs in the child process.
  [[noreturn]] void run_here(size_t first, int descriptor) {
    Report report(descriptor);
    if (!has_device()) _exit(no_device);
    choose_device();
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
    part_began_ = Clock::now();
    bool hangs = false;
    std::string text;
    for (;;) {
      const double of_part = std::chrono::duration<double>(Clock::now() - part_began_).count();
      const double left = std::min(options_.part_seconds - of_part, options_.seconds + 3 - seconds());
      struct pollfd wanted = {ends[0], POLLIN, 0};
      const int ready = left > 0 ? poll(&wanted, 1, static_cast<int>(left * 1000) + 1) : 0;
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) {
        hangs = true;
        break;
      }
      char buffer[4096];
      const ssize_t count = read(ends[0], buffer, sizeof buffer);
      if (count <= 0) break;
      text.append(buffer, static_cast<size_t>(count));
      for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
        take(text.substr(0, end));
    }
    if (hangs) kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    close(ends[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == no_device) {
      show("no CUDA device: this program needs one");
      return no_device;
    }
    if (hangs) fail(running(), "ran past its time");
    else if (WIFSIGNALED(status)) fail(running(), text_of("ended by signal %d", WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 3)
      fail(running(), text_of("ended with %d", WEXITSTATUS(status)));
    if (next_ == before) {  // not even the first part began
      fail("the device", "no part begins");
      next_ = parts_.size();
    }
    return 0;
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
  Clock::time_point part_began_;
  std::FILE* file_ = nullptr;
  std::vector<std::string> rows_;
  std::map<std::string, double> shares_;
  Peaks peaks_;
  size_t next_ = 0;  // number of parts that have begun
  int failures_ = 0;
};

}  // namespace

int run_parts(const Options& options, const std::vector<Part>& parts) {
  if (!options.here) return Watcher(options, parts).run();
  if (!has_device()) return std::puts("no CUDA device: this program needs one"), 77;
  choose_device();
  Report report(STDOUT_FILENO);
  Peaks peaks;
  for (const Part& part : parts) part.run(report, options, peaks);
  return 0;
}

}  // namespace stw::probe
