// What a config.json says of rotary positions (Su et al., "RoFormer", arXiv 2104.09864), and what angles grow by.
#pragma once
#include <optional>
#include <vector>

#include "planner/base/json.h"
#include "planner/base/result.h"

namespace stw {

enum class RotaryScaling : uint8_t { none, linear, llama3, longrope };

struct RotaryConfig {
  double theta = 10000;
  int turned = 0;                  // numbers of a head that are turned, the first ones; even
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1;
  double low_frequency_factor = 1, high_frequency_factor = 4;   // llama3
  int64_t original_positions = 0;  // of llama3 and longrope: those of the model before its angles were scaled
  std::vector<double> short_factors, long_factors;   // longrope: of every frequency, for samples up to original_positions and for longer ones
  double table_scale = 1;          // longrope: of cosines and sines
};

struct PositionCounts {
  int64_t now;                                // a model's
  std::optional<int64_t> original = {};       // a family's before angles were scaled, if it has any
  bool counts_beside = true;                  // whether what the whole config says of those counts, before what stands within
};
// Of a whole config.json. Newer files hold everything in "rope_parameters", older ones theta beside "rope_scaling".
// Errors: corrupt, unsupported_field.
Result<RotaryConfig> parse_rotary(const Json& config, int head_dim, PositionCounts positions, double absent_theta);
// Of one such object, or null; `absent_theta` where it has none.
Result<RotaryConfig> parse_rotary_parameters(const Json& config, const Json* parameters, int head_dim, PositionCounts positions, double absent_theta);
// Whether it is, and so are its roots and quotients.
inline bool is_positive_in_fp32(double x) { return x >= 1e-30 && x <= 1e30; }
// Null where there is none, or an empty one.
Result<const Json*> find_object(const Json& json, const char* key);

// Inverse frequencies for samples of that length, in the fp32 arithmetic of transformers.
std::vector<float> rotary_frequencies(const RotaryConfig& rotary, int64_t sequence);

}  // namespace stw
