// Runs a command and lets one of its system calls fail: `fail_call REPORT FOLDER CALL N ERRNO COMMAND…`. The
// N-th CALL about a file below FOLDER is not made and fails with ERRNO. With N = 0 no call fails. REPORT gets
// a line "CALL COUNT" for each of the calls below, and "signal NUMBER" if a signal ended the command. Exits
// as the command does, or with 77 if tracing is not possible. It needs Linux on x86-64.
#if defined(__linux__) && defined(__x86_64__)
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int no_tracing = 77, misused = 125;

// A system call, and which of its arguments is the descriptor or the path of the file.
struct Call {
  const char* name;
  unsigned number;
  enum { descriptor, path } kind;
  int argument;
};
constexpr Call calls[] = {
    {"openat", SYS_openat, Call::path, 1},
    {"read", SYS_read, Call::descriptor, 0},
    {"pread64", SYS_pread64, Call::descriptor, 0},
    {"write", SYS_write, Call::descriptor, 0},
    {"pwrite64", SYS_pwrite64, Call::descriptor, 0},
    {"fsync", SYS_fsync, Call::descriptor, 0},
    {"close", SYS_close, Call::descriptor, 0},
    {"ftruncate", SYS_ftruncate, Call::descriptor, 0},
    {"fallocate", SYS_fallocate, Call::descriptor, 0},
    {"flock", SYS_flock, Call::descriptor, 0},
    {"fchmod", SYS_fchmod, Call::descriptor, 0},
    {"getdents64", SYS_getdents64, Call::descriptor, 0},
    {"rename", SYS_rename, Call::path, 0},
    {"renameat2", SYS_renameat2, Call::path, 1},
    {"mkdir", SYS_mkdir, Call::path, 0},
    {"unlink", SYS_unlink, Call::path, 0},
    {"rmdir", SYS_rmdir, Call::path, 0},
};
constexpr size_t call_count = std::size(calls);

// Stops for the tracer at these calls only, so that the command runs at its usual speed.
bool trace_calls() {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (size_t i = 0; i < call_count; ++i)
    program.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, static_cast<unsigned char>(call_count - i), 0));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// A text in the memory of another process, up to the end of its page. That is enough for the short names of
// the tests' folders.
std::string text_of(pid_t process, unsigned long long at) {
  constexpr size_t page = 4096;
  char text[page];
  iovec here{text, page - at % page}, there{reinterpret_cast<void*>(at), here.iov_len};
  const ssize_t count = process_vm_readv(process, &here, 1, &there, 1, 0);
  return std::string(text, strnlen(text, static_cast<size_t>(std::max<ssize_t>(count, 0))));
}

std::string subject_of(pid_t process, const user_regs_struct& registers, const Call& call) {
  const unsigned long long value = call.argument == 0 ? registers.rdi : registers.rsi;
  if (call.kind == Call::path) return text_of(process, value);
  char path[4096];
  const std::string link =
      "/proc/" + std::to_string(process) + "/fd/" + std::to_string(static_cast<int>(value));
  const ssize_t length = readlink(link.c_str(), path, sizeof path);
  return std::string(path, static_cast<size_t>(std::max<ssize_t>(length, 0)));
}

struct Fault {
  std::string_view folder, call;
  unsigned long n = 0;
  int error = 0;
  std::array<unsigned long, call_count> counts{};

  // Counts the call that a process is about to make, and lets it fail if it is the chosen one.
  void at_call(pid_t process) {
    user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, process, nullptr, &registers) != 0) return;  // the process has ended
    for (size_t i = 0; i < call_count; ++i) {
      if (calls[i].number != registers.orig_rax) continue;
      if (!subject_of(process, registers, calls[i]).starts_with(folder)) return;
      if (++counts[i] != n || call != calls[i].name) return;
      registers.orig_rax = ~0ull;  // no system call
      registers.rax = static_cast<unsigned long long>(-static_cast<long long>(error));
      ptrace(PTRACE_SETREGS, process, nullptr, &registers);
      return;
    }
  }
};

// Follows a command with all its threads to its end. Returns the status that waitpid gives.
int follow(pid_t command, Fault& fault) {
  int end = 0, status = 0;
  for (pid_t process; (process = waitpid(-1, &status, __WALL)) > 0;) {
    if (!WIFSTOPPED(status)) {
      if (process == command) end = status;
      continue;
    }
    const int signal = WSTOPSIG(status), event = status >> 16;
    if (event == PTRACE_EVENT_SECCOMP) fault.at_call(process);
    const bool is_ours = event != 0 || signal == SIGSTOP;  // a new thread begins with SIGSTOP
    ptrace(PTRACE_CONT, process, nullptr, is_ours ? 0 : signal);
  }
  return end;
}

}  // namespace

int main(int count, char** words) {
  if (count < 7) return misused;
  const pid_t command = fork();
  if (command == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(no_tracing);
    raise(SIGSTOP);  // until the tracer has set its options
    if (!trace_calls()) _exit(no_tracing);
    execv(words[6], words + 6);
    _exit(misused);
  }
  int status = 0;
  if (command < 0 || waitpid(command, &status, 0) != command || !WIFSTOPPED(status)) return no_tracing;
  constexpr long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                           PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SETOPTIONS, command, nullptr, options) != 0) {
    kill(command, SIGKILL);
    return no_tracing;
  }
  Fault fault{words[2], words[3], std::strtoul(words[4], nullptr, 10), std::atoi(words[5])};
  ptrace(PTRACE_CONT, command, nullptr, 0);
  const int end = follow(command, fault);
  std::FILE* const report = std::fopen(words[1], "w");
  if (!report) return misused;
  for (size_t i = 0; i < call_count; ++i) std::fprintf(report, "%s %lu\n", calls[i].name, fault.counts[i]);
  if (WIFSIGNALED(end)) std::fprintf(report, "signal %d\n", WTERMSIG(end));
  std::fclose(report);
  return WIFEXITED(end) ? WEXITSTATUS(end) : 128 + WTERMSIG(end);
}

#else
int main() { return 77; }
#endif
