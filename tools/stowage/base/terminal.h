// Whether somebody looks on, and how wide.
#pragma once
#include <cstddef>

namespace command {

// Where a line can be redrawn: a terminal that is not a dumb one.
bool is_terminal(int descriptor);
size_t columns_of(int descriptor);   // 80 where nobody knows

}  // namespace command
