// 64-bit XXH3: the checksum of checkpoints and the fingerprint of plans. Not secure against forgery.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace stw {

// A streaming hash: the digest depends only on the bytes, not on the pieces. Only the constructor allocates.
class Hash64 {
 public:
  Hash64();
  Hash64(Hash64&&) noexcept;
  Hash64& operator=(Hash64&&) noexcept;
  ~Hash64();
  void reset();
  void update(const void* data, size_t bytes);
  // The digest of all bytes so far; more may follow.
  uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

uint64_t hash64(const void* data, size_t bytes);

}  // namespace stw
