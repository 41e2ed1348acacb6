// The subcommand `train`.
#pragma once
#include "run/train_flags.h"

namespace CLI {
class App;
}

namespace command {

// `line` is the parsed command line, of which the run keeps the options. Throws a Failure if the run cannot
// begin or fails.
void train(const TrainFlags& flags, const CLI::App& line);

}  // namespace command
