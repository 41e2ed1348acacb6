// The current device of a host's thread while it is inside the library.
#pragma once
#include <optional>

namespace stw::cuda {

// Whether a device's primary context exists already; the library or the host may have made it. nullopt:
// unknown.
std::optional<bool> has_context(int ordinal);

// Makes a device the thread's current one for the object's lifetime. The destructor restores the thread's
// earlier context: a primary context, one that the host created, or none. No device gets a context that the
// host did not ask for. While another thread of the host captures a stream in CUDA's default mode, all
// threads are forbidden to allocate, free and query. This object exempts its thread by setting the relaxed
// mode. The capture does not see this thread's work, and is not harmed, with one exception: a re-plan copies
// on the default stream, which harms a capture whose stream waits for the default stream.
class Current {
 public:
  explicit Current(int ordinal);
  ~Current();
  Current(const Current&) = delete;
  // The cudaError_t of the choice, 0 if it worked. After a failure, the thread may work on another device.
  int failure() const { return failure_; }

 private:
  void* context_ = nullptr;  // a CUcontext
  int failure_ = 0;
  int device_ = -1;  // the runtime's current device
  int mode_ = -1;    // a CUstreamCaptureMode of this thread; -1 where the driver cannot change it
};

}  // namespace stw::cuda
