// Runs through the tiles of tensor-core products, by forcing one after the other (kernels/cuda/developer.h).
#pragma once
#include <string>
#include <vector>

#include "kernels/contract/kernels.h"
#include "kernels/cuda/developer.h"

namespace stw::kernels::test {

// Restores the switches at the end of a scope.
class SwitchesOfScope {
 public:
  SwitchesOfScope() : before_(cuda::developer_switches()) {}
  ~SwitchesOfScope() { cuda::developer_switches() = before_; }
  SwitchesOfScope(const SwitchesOfScope&) = delete;
  SwitchesOfScope& operator=(const SwitchesOfScope&) = delete;

 private:
  cuda::DeveloperSwitches before_;
};

struct TilesTried {
  std::vector<std::string> computed, refused;
};

// Calls begin(name), launch() and end(name) for each tile in turn. begin() poisons the output and end()
// checks it; end() is omitted if the tile does not support the product. All products of a launch() are of the
// same kind.
template <class Begin, class LaunchAll, class End>
TilesTried for_product_tiles(const Begin& begin, const LaunchAll& launch, const End& end) {
  const SwitchesOfScope scope;
  cuda::DeveloperSwitches& switches = cuda::developer_switches();
  TilesTried tried;
  for (int tile = 0; tile < cuda::product_tile_count; ++tile) {
    const std::string name = cuda::product_tile_names[tile];
    switches.tile = tile;
    switches.refused = 0;
    begin(name);
    launch();
    if (switches.refused > 0) {
      tried.refused.push_back(name);
    } else {
      tried.computed.push_back(name);
      end(name);
    }
  }
  return tried;
}

}  // namespace stw::kernels::test
