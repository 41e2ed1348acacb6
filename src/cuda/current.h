// Which device a thread of the host works with while it is in the library.
#pragma once
#include <optional>

namespace stw::cuda {

// Whether a device's own (primary) context is there already, whoever made it; nothing where the driver does not tell.
std::optional<bool> has_context(int ordinal);

// Makes a device the current one of this thread for as long as it lives. What the host had comes back: its context, be it a
// device's own or one that it made, or none, so that no device begins to work that nobody asked for. A capture that another thread
// of the host began in its default mode forbids all others to allocate, to free and to ask; not this one, whose work it does not see
// (unless the captured stream waits for the default stream, on which re-planning copies).
class Current {
 public:
  explicit Current(int ordinal);
  ~Current();
  Current(const Current&) = delete;

 private:
  void* context_ = nullptr;   // a CUcontext
  int device_ = -1;           // what the runtime says
  int mode_ = -1;             // a CUstreamCaptureMode, of this thread; none where the driver does not change it
};

}  // namespace stw::cuda
