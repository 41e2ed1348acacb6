#include "src/base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stw {

struct Hash64::State {
  XXH3_state_t value;
};

Hash64::Hash64() : state_(std::make_unique_for_overwrite<State>()) { reset(); }
Hash64::Hash64(Hash64&&) noexcept = default;
Hash64& Hash64::operator=(Hash64&&) noexcept = default;
Hash64::~Hash64() = default;

void Hash64::reset() { XXH3_64bits_reset(&state_->value); }

void Hash64::update(const void* data, size_t bytes) {
  if (bytes > 0) XXH3_64bits_update(&state_->value, data, bytes);
}

uint64_t Hash64::digest() const { return XXH3_64bits_digest(&state_->value); }

uint64_t hash64(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }

}  // namespace stw
