// What most files of tests include of GoogleTest and the standard library: compiled once for a test program
// instead of once for each of its files. Nothing of ours is here. What is compiled before has to be the same
// file that is included after: `#pragma once` compares bytes, while ccache hands out one that it compiled
// before a comment was changed.
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
