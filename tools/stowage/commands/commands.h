// The subcommands: each adds itself to the application, with its flags and what to run when it is chosen.
#pragma once
#include <string>

namespace CLI {  // its headers cost more to compile than all else here
class App;
}

namespace command {

void add_plan(CLI::App& application);
// `program`: the name by which this command was called. The message that says how to continue an interrupted
// run contains it.
void add_train(CLI::App& application, const std::string& program);
void add_eval(CLI::App& application);
void add_generate(CLI::App& application);
void add_classify(CLI::App& application);
void add_inspect(CLI::App& application);
void add_devices(CLI::App& application);
void add_calibrate(CLI::App& application);
void add_merge(CLI::App& application);
void add_tokenize(CLI::App& application);
void add_pack(CLI::App& application);
void add_help(CLI::App& application);

}  // namespace command
