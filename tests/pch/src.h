// Compiled once for the tests of src/ instead of once for each file of theirs: half the time to build them.
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

#include "src/trainer.h"
#include "tests/src/small_models.h"
#include "tests/src/temporary_directory.h"
