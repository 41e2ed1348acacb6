#include "src/models/rotary.h"

#include <cmath>

#include "src/base/elementary.h"

namespace stw {

namespace {

// For models with one kind of layer, the config's own count takes precedence over the one in the rope
// parameters. Source: transformers, modeling_rope_utils.py.
Result<int64_t> parse_original_positions(const Json& config, const Json& parameters,
                                         PositionCounts positions) {
  STW_ASSIGN(inner, get_int(parameters, "original_max_position_embeddings", positions.now));
  if (!positions.outer_count_first) return inner;
  return get_int(config, "original_max_position_embeddings", positions.original.value_or(inner));
}

Status parse_llama3(const Json& config, const Json& parameters, PositionCounts positions, RotaryConfig& r) {
  STW_ASSIGN(low, get_double(parameters, "low_freq_factor"));
  STW_ASSIGN(high, get_double(parameters, "high_freq_factor"));
  STW_ASSIGN(original, parse_original_positions(config, parameters, positions));
  if (!(low > 0) || !(high > low) || original < 1)
    return Error{Code::unsupported_field, "rope scaling factors make no sense"};
  r.low_frequency_factor = low;
  r.high_frequency_factor = high;
  r.original_positions = original;
  r.scaling = RotaryScaling::llama3;
  return ok();
}

Result<std::vector<double>> parse_factors(const Json& parameters, const char* key, int count) {
  const Json* list = parameters.find(key);
  if (!list || !list->is_array())
    return Error{Code::corrupt, std::string("expected a list of numbers as ") + key};
  std::vector<double> factors;
  for (const Json& x : list->elements()) {
    const double value = x.as_double() ? *x.as_double() : x.as_int() ? static_cast<double>(*x.as_int()) : 0;
    if (!is_positive_in_fp32(value))
      return Error{Code::unsupported_field,
                   std::string("expected positive numbers, neither tiny nor huge, in ") + key};
    factors.push_back(value);
  }
  if (factors.size() != static_cast<size_t>(count))
    return Error{Code::unsupported_field, std::string("expected ") + std::to_string(count) + " numbers in " +
                                              key + ", found " + std::to_string(factors.size())};
  return factors;
}

// LongRoPE (Ding et al., arXiv 2402.13753) in Phi-3's form. Source: transformers, modeling_rope_utils.py.
Status parse_longrope(const Json& config, const Json& parameters, PositionCounts positions, RotaryConfig& r) {
  STW_ASSIGN(original, parse_original_positions(config, parameters, positions));
  if (original < 2)
    return Error{Code::unsupported_field, "original_max_position_embeddings is " + std::to_string(original)};
  STW_ASSIGN(short_factors, parse_factors(parameters, "short_factor", r.rotary_dim / 2));
  STW_ASSIGN(long_factors, parse_factors(parameters, "long_factor", r.rotary_dim / 2));
  STW_ASSIGN(factor, get_double(parameters, "factor",
                                static_cast<double>(positions.now) / static_cast<double>(original)));
  const double usual =
      factor <= 1 ? 1 : std::sqrt(1 + portable_log(factor) / portable_log(static_cast<double>(original)));
  STW_ASSIGN(scale, get_double(parameters, "attention_factor", usual));
  if (!is_positive_in_fp32(scale))
    return Error{Code::unsupported_field,
                 "attention_factor must be positive, and neither tiny nor huge in fp32"};
  r.original_positions = original;
  r.short_factors = short_factors;
  r.long_factors = long_factors;
  r.table_scale = scale;
  r.scaling = RotaryScaling::longrope;
  return ok();
}

}  // namespace

Result<const Json*> find_object(const Json& json, const char* key) {
  if (!find_present(json, key)) return nullptr;
  STW_ASSIGN(object, get_object(json, key));
  return object->members().empty() ? nullptr : object;
}

Result<RotaryConfig> parse_rotary_parameters(const Json& config, const Json* parameters, int head_dim,
                                             PositionCounts positions, double absent_theta) {
  RotaryConfig r;
  const Json nothing = Json::object(), &first = parameters ? *parameters : nothing;
  STW_ASSIGN(theta, get_double(first, "rope_theta", absent_theta));
  if (!is_positive_in_fp32(theta))
    return Error{Code::unsupported_field, "rope_theta must be positive, and neither tiny nor huge in fp32"};
  STW_ASSIGN(outer_partial, get_double(config, "partial_rotary_factor", 1.0));
  STW_ASSIGN(partial, get_double(first, "partial_rotary_factor", outer_partial));
  r.theta = theta;
  r.rotary_dim = partial > 0 && partial <= 1 ? static_cast<int>(head_dim * partial) : 0;
  if (r.rotary_dim < 2 ||
      (r.rotary_dim % 2 != 0 && r.rotary_dim != head_dim))  // parse_model refuses odd head widths
    return Error{Code::unsupported_field, "a partial_rotary_factor of " + to_string(Json(partial), 0) +
                                              " does not rotate an even number of elements in heads of " +
                                              std::to_string(head_dim)};
  if (!parameters) return r;
  STW_ASSIGN(legacy, get_string(*parameters, "type", "default"));
  STW_ASSIGN(type, get_string(*parameters, "rope_type", legacy));
  if (type == "default") return r;
  if (type == "longrope" || type == "su") {
    STW_TRY(parse_longrope(config, *parameters, positions, r));
    return r;
  }
  if (type != "linear" && type != "llama3")
    return Error{Code::unsupported_field, "rope scaling \"" + type + "\" is not supported"};
  STW_ASSIGN(factor, get_double(*parameters, "factor"));
  if (!(factor >= 1)) return Error{Code::unsupported_field, "rope scaling factor is below 1"};
  if (!is_positive_in_fp32(factor)) return Error{Code::unsupported_field, "rope scaling factor is too large"};
  r.factor = factor;
  r.scaling = RotaryScaling::linear;
  if (type == "llama3") STW_TRY(parse_llama3(config, *parameters, positions, r));
  return r;
}

// Some configs have "rope_theta" next to "rope_parameters". If a config has "rope_parameters" and the older
// "rope_scaling", only the older one counts. Source: transformers, modeling_rope_utils.py.
Result<RotaryConfig> parse_rotary(const Json& config, int head_dim, PositionCounts positions,
                                  double absent_theta) {
  STW_ASSIGN(older, find_object(config, "rope_scaling"));
  STW_ASSIGN(newer, find_object(config, "rope_parameters"));
  STW_ASSIGN(outer_theta, get_double(config, "rope_theta", absent_theta));
  return parse_rotary_parameters(config, older ? older : newer, head_dim, positions, outer_theta);
}

// Source: transformers, modeling_rope_utils.py.
std::vector<float> rotary_frequencies(const RotaryConfig& r, int64_t sequence) {
  std::vector<float> f;
  for (int i = 0; i < r.rotary_dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(r.rotary_dim);
    const float power = static_cast<float>(portable_pow(r.theta, static_cast<double>(exponent)));
    float inverse = 1.0f / power;
    if (r.scaling == RotaryScaling::linear) inverse = static_cast<float>(inverse / r.factor);
    if (r.scaling == RotaryScaling::longrope) {
      const std::vector<double>& factors = sequence > r.original_positions ? r.long_factors : r.short_factors;
      inverse = 1.0f / (static_cast<float>(factors[i / 2]) * power);
    }
    if (r.scaling == RotaryScaling::llama3) {
      const double pi2 = 6.283185307179586;
      const double wavelength = static_cast<double>(static_cast<float>(pi2 / inverse));
      const double low = static_cast<double>(r.original_positions) / r.low_frequency_factor;
      const double high = static_cast<double>(r.original_positions) / r.high_frequency_factor;
      const float scaled = static_cast<float>(inverse / r.factor);
      if (wavelength > low) {
        inverse = scaled;
      } else if (wavelength >= high) {
        const float smooth = static_cast<float>(
            (static_cast<double>(r.original_positions) / wavelength - r.low_frequency_factor) /
            (r.high_frequency_factor - r.low_frequency_factor));
        inverse = (1 - smooth) * scaled + smooth * inverse;
      }
    }
    f.push_back(inverse);
  }
  return f;
}

}  // namespace stw
