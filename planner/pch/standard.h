// What most files include of the standard library: compiled once for a library instead of once for each of its files, of which
// it is a quarter of the time. Files include what they need all the same; `tools/test --full` builds without this.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
