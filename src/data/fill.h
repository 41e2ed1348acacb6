// The order in which documents fill samples, if samples take them one after the other.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace stw {

// The numbers of the documents in an order in which samples of `length` tokens and at most `most` documents
// have little padding, where a sample begins as soon as the next document does not fit. A document that fits
// the rest of a sample exactly goes first, then the next one in the given order, then the longest that fits.
// A document longer than a sample fills one.
std::vector<size_t> filling_order(std::span<const uint64_t> lengths, uint64_t length, uint64_t most);

}  // namespace stw
