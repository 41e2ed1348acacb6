// What to say of a line of words that is no command: names what is wrong, and what was probably meant.
#pragma once
#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace command {

// A line for each flag that is wrong.
std::vector<std::string> usage_errors(const CLI::App& application, const CLI::ParseError& error);

// Throws a Failure where a flag stands in the place of another one's value: `--out --overwrite`. As `--out=--overwrite` it is a value.
void require_values(const CLI::App& application, const std::vector<std::string>& words);

}  // namespace command
