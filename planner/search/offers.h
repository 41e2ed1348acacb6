// Offers: combinations of changes that make a request need less memory. This file knows the changes, their
// words, and the order in which a person would try them; relaxations.h finds out which offers fit.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace stw {

// A change of one setting, in the order in which an offer's text names them.
enum class Step : uint8_t {
  precision,     // bf16 instead of fp32
  lora,          // adapters of rank `offered_rank`
  adafactor,     // another optimizer
  states,        // 8 bits
  split8,        // master
  stochastic,    // master
  gradients,     // bf16
  fused_update,  // and what it excludes
  int8,          // quantize
  nf4,           // quantize
  embeddings,    // quantize_embeddings
  attention,     // own instead of cudnn
  micro_batch,   // chosen by the planner
  recompute,     // chosen by the planner
  host_memory,   // Offer::host_bytes
  sequence,      // Offer::sequence
  model,         // Offer::preset
};
inline constexpr int step_count = 17;
using Steps = uint32_t;  // a bit for each Step
constexpr Steps bit(Step step) { return Steps{1} << static_cast<int>(step); }
template <class... Rest>
constexpr Steps bits(Rest... steps) {
  return (bit(steps) | ... | Steps{0});
}

inline constexpr int64_t offered_rank = 16;
inline constexpr int64_t shortest_sequence = 32;  // tokens of a sample; shorter ones are not offered
inline constexpr int64_t sequence_step = 8;       // lengths are multiples of it, so that fewer are tried
// Host memory is offered in whole MiB, so that its flag is short.
inline constexpr uint64_t mebibyte = uint64_t{1} << 20;

struct Offer {
  Steps steps = 0;
  uint64_t host_bytes = 0;
  int64_t sequence = 0;
  std::string preset = {};
  bool has(Step step) const { return steps & bit(step); }
};

// The steps that change this request to something else that the planner accepts.
Steps possible_steps(const Request& request, bool has_adapters, const Alternatives& alternatives);
// Whether a set has all steps of another one. A stronger step counts as the weaker one, too: stochastic
// masters as split8, and nf4 as int8.
bool contains(Steps set, Steps part);

// The steps that change no result, and attention's kernels: every combination, the smallest first.
std::vector<Steps> free_offers(Steps possible);
// Cheaper number formats, with all parameters trained.
std::vector<Steps> format_offers(Steps possible);
// The combinations of format_offers() that need the fewest bytes.
std::vector<Steps> smallest_formats(Steps possible);
// Adapters, and cheaper formats of the matrices below them. `has_adapters`: the request has them.
std::vector<Steps> adapter_offers(Steps possible, bool has_adapters);

Request changed_request(const Request& request, const Offer& offer);
ModelChange model_change(const Offer& offer);
// "states 8, master split8"
std::string change_text(const Request& request, const Offer& offer);
// The same as flags of the command: "--states 8 --master split8". A change has the name of its flag, with _
// for -.
std::string flags_text(const std::string& change);
// What is different in the result: "optimizer states have 8 bits, …". Empty: nothing.
std::string effect_text(const Offer& offer);
bool changes_numerics(Steps steps);

}  // namespace stw
