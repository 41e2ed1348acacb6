// An order of documents with which samples have little padding.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace stw {

// The numbers of the documents in an order that leaves little padding in samples of `length` tokens and at
// most `most` documents. A sample ends if the next document does not fit. Each time, the order takes a
// document that fits the rest of the sample exactly. If there is none, it takes the next one in the given
// order. If that one does not fit, or would be the last of `most`, it takes the longest that fits. A document
// longer than a sample fills one.
std::vector<size_t> filling_order(std::span<const uint64_t> lengths, uint64_t length, uint64_t most);

}  // namespace stw
