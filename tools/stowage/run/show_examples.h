// Examples as a run learns them, for people: the text of each, what of it is learned, its tokens, and how many.
#pragma once
#include <cstdint>

#include "data/data.h"

namespace command {

// The first `count` of the file on standard output, in the file's order where their lines are known, else in that of the run; of a text, or tokens, the
// first samples. Those that are left out are not shown.
void show_examples(uint64_t count, const DataFlags& flags, const DataRequest& request);

}  // namespace command
