// Compiled once for the tests of kernels/ instead of once for each file of theirs: half the time to build them.
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

#include "tests/kernels/everywhere.h"
#include "tests/kernels/harness.h"
