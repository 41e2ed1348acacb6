// Rotary positions (Su et al., "RoFormer", arXiv 2104.09864): their settings in a config.json, and the
// frequencies of their angles.
#pragma once
#include <optional>
#include <vector>

#include "planner/base/json.h"
#include "planner/base/result.h"

namespace stw {

enum class RotaryScaling : uint8_t { none, linear, llama3, longrope };

struct RotaryConfig {
  double theta = 10000;
  int rotary_dim = 0;  // how many of a head's first numbers are rotated; even
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1;
  double low_frequency_factor = 1, high_frequency_factor = 4;  // llama3
  // llama3 and longrope: the number of positions that the model had before its angles were scaled
  int64_t original_positions = 0;
  // longrope: a factor for each frequency, for samples up to original_positions and for longer ones
  std::vector<double> short_factors, long_factors;
  double table_scale = 1;  // longrope: factor of cosines and sines
};

struct PositionCounts {
  int64_t now;                           // of the model, by its config
  std::optional<int64_t> original = {};  // before angles were scaled; nullopt: the family has no default
  // The count of original positions in the config itself takes precedence over that in the rope parameters.
  bool outer_count_first = true;
};
// Reads a whole config.json. Newer files hold everything in "rope_parameters", older ones have theta next to
// "rope_scaling". Errors: corrupt, unsupported_field.
Result<RotaryConfig> parse_rotary(const Json& config, int head_dim, PositionCounts positions,
                                  double absent_theta);
// Reads one object of rope parameters, which may be null. `absent_theta`: the default theta.
Result<RotaryConfig> parse_rotary_parameters(const Json& config, const Json* parameters, int head_dim,
                                             PositionCounts positions, double absent_theta);
// Whether x, its roots and its quotients are positive in fp32.
inline bool is_positive_in_fp32(double x) { return x >= 1e-30 && x <= 1e30; }
// Null where there is no object, or an empty one.
Result<const Json*> find_object(const Json& json, const char* key);

// Inverse frequencies for samples of this length, in the fp32 arithmetic of transformers.
std::vector<float> rotary_frequencies(const RotaryConfig& rotary, int64_t sequence);

}  // namespace stw
