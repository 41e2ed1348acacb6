// What to say of a line of words that is no command, in one line: names what is wrong, and what was probably meant.
#pragma once
#include <CLI/App.hpp>
#include <string>

namespace command {

std::string usage_error(const CLI::App& application, const CLI::ParseError& error);

}  // namespace command
