#include "usage_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "foreign_flags.h"

namespace command {
namespace {

// How many letters to put in, take out, replace, or swap with their neighbour make one of the other (optimal string alignment).
size_t distance(std::string_view one, std::string_view other) {
  std::vector<size_t> before(other.size() + 1), above(other.size() + 1), row(other.size() + 1);
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 1; i <= one.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= other.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (one[i - 1] != other[j - 1])});
      if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above), above.swap(row);
  }
  return above[other.size()];
}

// "; did you mean NAME?", or nothing where no name is near: a third of its letters is too many.
std::string suggestion(const std::string& word, const std::vector<std::string>& names) {
  const auto nearest = std::min_element(names.begin(), names.end(), [&](const std::string& a, const std::string& b) { return distance(word, a) < distance(word, b); });
  const bool is_near = nearest != names.end() && 3 * distance(word, *nearest) <= nearest->size();
  return is_near ? fmt::format("; did you mean {}?", *nearest) : "";
}

std::string no_command(const CLI::App& application) {
  std::vector<std::string> names;
  for (const CLI::App* command : application.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
  const std::vector<std::string> words = application.remaining(true);
  const std::string there_are = fmt::format("; there are {}", fmt::join(names, ", "));
  if (words.empty()) return "expected a command" + there_are;
  const std::string meant = suggestion(words.front(), names);
  return words.front() + ": there is no such command or flag" + (meant.empty() ? there_are : meant);
}

std::string no_flag(const CLI::App& command, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const auto meant = foreign_flag(word, names);
  return fmt::format("{}: there is no such flag{}", word, meant ? *meant : suggestion(word.substr(0, word.find('=')), names));
}

}  // namespace

std::string usage_error(const CLI::App& application, const CLI::ParseError& error) {
  const std::vector<CLI::App*> commands = application.get_subcommands();
  if (commands.empty()) return no_command(application);
  // A flag that is spelled wrong is more to the point than the one that is missing for it, or the value behind it.
  const std::vector<std::string> words = application.remaining(true);
  const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error), is_left = dynamic_cast<const CLI::ExtrasError*>(&error);
  if (is_missing || is_left)
    for (const std::string& word : words)
      if (word.starts_with("-")) return no_flag(*commands.front(), word);
  if (is_left && !words.empty()) return fmt::format("{}: belongs to no flag; a value with spaces needs quotes", words.front());
  return error.what();
}

}  // namespace command
