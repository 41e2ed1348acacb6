// Headers of GoogleTest and the standard library that most tests include. They are compiled once for a test
// program instead of once for each file. No header of ours is here: the compiler cache ignores comments and
// may return an older precompiled header, in which `#pragma once` would not recognise a header of ours that
// has changed since.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>
