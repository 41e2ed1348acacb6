// A queue of a trainer's work, executed in order: programs, and copies between host and device.
#pragma once
#include <cstddef>
#include <cstdint>

#include "planner/base/result.h"
#include "planner/graph/numerics.h"

namespace stw {

struct Execution;
struct Program;

class Stream {
 public:
  virtual ~Stream() = default;
  // Loads what these numerics need in addition to our own kernels. Errors: unsupported, with what to install.
  virtual Status load(const Numerics& numerics) = 0;
  // Sets the kernels, threads and device stream of an execution.
  virtual void bind(Execution& execution) const = 0;
  // The address at which the host can access this device memory without a copy; null where it cannot.
  virtual std::byte* on_host(std::byte* memory) const = 0;
  // The caller may overwrite `from` once this returns.
  virtual void upload(void* to, const void* from, uint64_t bytes) = 0;
  // Waits for all earlier work.
  virtual Status download(void* to, const void* from, uint64_t bytes) = 0;
  virtual void zero(void* to, uint64_t bytes) = 0;
  // Both regions are on the device, and may overlap.
  virtual void move(void* to, const void* from, uint64_t bytes) = 0;
  // Loads the code of a program and makes its launch list, so that the first run need not.
  virtual Status prepare(const Execution& execution, const Program& program) = 0;
  // An asynchronous device returns before the work is done, but not before the program that was launched
  // earlier is done. A cancelled call ends the wait (check_in.h); launched work goes on. A `program` must not
  // change until forget().
  virtual Status run(const Execution& execution, const Program& program) = 0;
  // Waits until all launched programs are done, unless the call is cancelled.
  virtual Status finish_programs() = 0;
  // Measures the seconds of every instruction.
  virtual Status run_timed(const Execution& execution, const Program& program, float* seconds) = 0;
  // Call before programs change.
  virtual void forget() = 0;
  // Waits until all work is done. Errors: failures since the last call.
  virtual Status wait() = 0;
};

}  // namespace stw
