#include "src/trainer/sampling.h"

#include <algorithm>
#include <numeric>

#include "src/base/elementary.h"
#include "src/base/random.h"

namespace stw {
namespace {

// The `count` tokens with the largest logits, in descending order.
std::vector<int32_t> most_probable(std::span<const float> logits, size_t count) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto is_before = [&](int32_t a, int32_t b) {
    const float x = logits[a], y = logits[b];
    return x != y ? x > y : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    is_before);
  order.resize(count);
  return order;
}

double sum_of(const std::vector<TokenChoice>& all) {
  double sum = 0;
  for (const TokenChoice& one : all) sum += one.weight;
  return sum;
}

}  // namespace

std::vector<TokenChoice> candidates(std::span<const float> logits, const Sampling& how) {
  const size_t count = how.top_k == 0 ? logits.size() : std::min<size_t>(how.top_k, logits.size());
  std::vector<TokenChoice> all;
  all.reserve(count);
  double top = 0;
  for (const int32_t token : most_probable(logits, count)) {
    const double logit = logits[token];
    if (all.empty()) top = logit;
    all.push_back({token, portable_exp((logit - top) / how.temperature)});
  }
  if (how.top_p == 0) return all;
  const double wanted = how.top_p * sum_of(all);
  double before = all[0].weight;
  size_t kept = 1;
  for (; kept < all.size() && before < wanted; ++kept) before += all[kept].weight;
  all.resize(kept);
  return all;
}

int32_t sample(std::span<const float> logits, const Sampling& how, uint64_t position) {
  if (how.temperature <= 0) return most_probable(logits, 1)[0];
  const std::vector<TokenChoice> all = candidates(logits, how);
  const auto words =
      philox(how.seed, {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0x67656e, 0});
  double left = sum_of(all) * ((static_cast<double>(words[0]) + words[1] / 4294967296.0) / 4294967296.0);
  for (const TokenChoice& one : all) {
    left -= one.weight;
    if (left < 0) return one.token;
  }
  return all.back().token;
}

}  // namespace stw
