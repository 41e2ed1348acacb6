// Messages about a wrong command line: the error, and what was probably meant.
#pragma once
#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace command {

// One line for each wrong flag.
std::vector<std::string> usage_errors(const CLI::App& application, const CLI::ParseError& error);

// Throws a Failure if a flag follows an option that needs a value: `--out --overwrite`. In
// `--out=--overwrite` it is the value.
void require_values(const CLI::App& application, const std::vector<std::string>& words);

}  // namespace command
