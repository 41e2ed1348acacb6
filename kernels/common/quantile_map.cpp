// The tables of quantile_map.h, and proofs of their shape at compile time. Compiled once.
#include "kernels/common/quantile_build.h"

namespace stw::kernels {

namespace {

constexpr QuantileMap signed_map = quantiles::make_map(true), unsigned_map = quantiles::make_map(false);
static_assert(quantiles::one_boundary_a_bucket(signed_map) && quantiles::one_boundary_a_bucket(unsigned_map));
static_assert(signed_map.value[127] == 0 && signed_map.value[255] == 1 && signed_map.zero == 127);
static_assert(unsigned_map.value[0] == 0 && unsigned_map.value[255] == 1 && unsigned_map.zero == 0);

}  // namespace

constinit const QuantileMap signed_quantiles = signed_map;
constinit const QuantileMap unsigned_quantiles = unsigned_map;

}  // namespace stw::kernels
