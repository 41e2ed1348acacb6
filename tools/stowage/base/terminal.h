// Whether an output is a terminal, and its width.
#pragma once
#include <cstddef>

namespace command {

// True if a line can be redrawn: a terminal whose TERM is not "dumb".
bool is_terminal(int descriptor);
size_t columns_of(int descriptor);  // 80 if the width is unknown

}  // namespace command
