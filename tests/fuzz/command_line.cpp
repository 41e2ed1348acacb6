// CLI11 emits its virtual tables only where the whole of it is included. The command does so in main.cpp,
// which these programs do not link.
#include <CLI/CLI.hpp>
#include <memory>

namespace command::fuzz {

std::unique_ptr<CLI::App> command_line() { return std::make_unique<CLI::App>(); }

}  // namespace command::fuzz
