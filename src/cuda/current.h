// The current device of a host's thread while it is inside the library.
#pragma once
#include <optional>

namespace stw::cuda {

// Whether a device's primary context exists already, whoever made it; nullopt where the driver does not tell.
std::optional<bool> has_context(int ordinal);

// Makes a device the thread's current one for the object's lifetime. Afterwards the host's context is
// restored: a primary context, one that the host made, or none, so that no device gets a context that the
// host did not ask for. A capture that another host thread began in the default mode forbids all other
// threads to allocate, free and query. This thread is exempt, as the capture does not see its work (unless
// the captured stream waits for the default stream, on which re-planning copies).
class Current {
 public:
  explicit Current(int ordinal);
  ~Current();
  Current(const Current&) = delete;

 private:
  void* context_ = nullptr;  // a CUcontext
  int device_ = -1;          // the runtime's current device
  int mode_ = -1;            // a CUstreamCaptureMode of this thread; -1 where the driver cannot change it
};

}  // namespace stw::cuda
