// Where a trainer's work goes, in order: programs, and copies between the host's memory and the device's.
#pragma once
#include <cstddef>
#include <cstdint>

#include "planner/graph/numerics.h"
#include "planner/base/result.h"

namespace stw {

struct Execution;
struct Program;

class Stream {
 public:
  virtual ~Stream() = default;
  // Takes what these numerics need besides our own kernels. Errors: unsupported, which says what to install.
  virtual Status load(const Numerics& numerics) = 0;
  // Fills in what executes: the kernels, threads, the device's stream.
  virtual void bind(Execution& execution) const = 0;
  // Where the host can read and write this memory of the device without a copy; null where it cannot.
  virtual std::byte* on_host(std::byte* memory) const = 0;
  // `from` may be written again when this returns.
  virtual void upload(void* to, const void* from, uint64_t bytes) = 0;
  // Waits for all that was asked before.
  virtual Status download(void* to, const void* from, uint64_t bytes) = 0;
  virtual void zero(void* to, uint64_t bytes) = 0;
  // The regions, both the device's, may overlap.
  virtual void move(void* to, const void* from, uint64_t bytes) = 0;
  // Takes now what the device needs to run a program, its code and its list of launches, instead of at the first run.
  virtual Status prepare(const Execution& execution, const Program& program) = 0;
  // Returns before the work is done where the device is asynchronous. `program` is the same at the next call, or was
  // forgotten in between.
  virtual Status run(const Execution& execution, const Program& program) = 0;
  // Every instruction under the clock: its seconds, one for each.
  virtual Status run_timed(const Execution& execution, const Program& program, float* seconds) = 0;
  // All programs are about to change.
  virtual void forget() = 0;
  // Until everything is done. Errors: what went wrong since the last call.
  virtual Status wait() = 0;
};

}  // namespace stw
