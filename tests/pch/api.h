// Compiled once for the tests of the C API instead of once for each file of theirs: half the time to build them.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/api/harness.h"
