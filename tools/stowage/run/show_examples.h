// Shows examples as a run learns them: the text, the learned part, the tokens and their number.
#pragma once
#include <cstdint>

#include "data/data.h"

namespace command {

// Prints the first `count` examples. They are in the order of the file if their lines are known, else in that
// of the run. For a text, or for tokens, it prints the first samples. Examples that are left out are not
// printed.
void show_examples(uint64_t count, const DataFlags& flags, const DataRequest& request);

}  // namespace command
