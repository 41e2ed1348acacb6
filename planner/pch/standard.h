// Headers of the standard library that most files include. They are compiled once for a library. Without this
// header they are compiled for each file, and take a quarter of the compile time. Files still include what
// they need; `tools/test --full` builds without this header.
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
