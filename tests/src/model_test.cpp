#include "src/model.h"

#include <gtest/gtest.h>
