#include "flags/usage_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/failure.h"
#include "flags/foreign_flags.h"

namespace command {
namespace {

// Optimal string alignment distance: the number of letters to insert, delete or replace, and of neighbours to
// swap, that turns one word into the other.
size_t distance(std::string_view one, std::string_view other) {
  std::vector<size_t> before(other.size() + 1), above(other.size() + 1), row(other.size() + 1);
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 1; i <= one.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= other.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (one[i - 1] != other[j - 1])});
      if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above), above.swap(row);
  }
  return above[other.size()];
}

// "; did you mean NAME?", or empty if no name is near. A name is near if at most a third of its letters
// differ.
std::string suggestion(const std::string& word, const std::vector<std::string>& names) {
  const auto nearest = std::min_element(
      names.begin(), names.end(),
      [&](const std::string& a, const std::string& b) { return distance(word, a) < distance(word, b); });
  const bool is_near = nearest != names.end() && 3 * distance(word, *nearest) <= nearest->size();
  return is_near ? fmt::format("; did you mean {}?", *nearest) : "";
}

std::string no_command(const CLI::App& application) {
  std::vector<std::string> names;
  for (const CLI::App* command : application.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  const std::vector<std::string> words = application.remaining(true);
  const std::string there_are = fmt::format("; there are {}", fmt::join(names, ", "));
  if (words.empty()) return "expected a command" + there_are;
  const std::string meant = suggestion(words.front(), names);
  return words.front() + ": there is no such command or flag" + (meant.empty() ? there_are : meant);
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

bool has_flag(const CLI::App& command, const std::string& flag) {
  const std::vector<std::string> flags = flags_of(command);
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

// "; it is a flag of train, plan", or empty.
std::string other_commands(const CLI::App& application, const CLI::App& command, const std::string& flag) {
  std::vector<std::string> names;
  for (const CLI::App* other : application.get_subcommands([](const CLI::App*) { return true; }))
    if (other != &command && has_flag(*other, flag)) names.push_back(other->get_name());
  return names.empty() ? "" : fmt::format("; it is a flag of {}", fmt::join(names, ", "));
}

std::string without_value(const std::string& word) { return word.substr(0, word.find('=')); }

std::string no_flag(const CLI::App& application, const CLI::App& command, const std::string& word) {
  const std::vector<std::string> names = flags_of(command);
  const auto meant = foreign_flag(word, names);
  const std::string near = meant ? *meant : suggestion(without_value(word), names);
  return fmt::format("{}: there is no such flag{}", word,
                     near.empty() ? other_commands(application, command, without_value(word)) : near);
}

const CLI::Option* option_named(const CLI::App& command, const std::string& flag) {
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames())
      if (flag == "--" + name) return option;
  return nullptr;
}

// The message about a wrong value. If the value comes from another trainer, the message gives its
// name here.
std::string wrong_value(const CLI::Option& option, const std::string& message) {
  const auto meant = option.results().empty() || option.get_lnames().empty()
                         ? std::nullopt
                         : foreign_value("--" + option.get_lnames().front(), option.results().back());
  return message + meant.value_or("");
}

// A message for each wrong value. CLI11 itself reports only the first one, which is `error`.
std::vector<std::string> wrong_values(CLI::App& command, const CLI::ParseError& error) {
  std::vector<std::string> lines;
  for (CLI::Option* option : command.get_options(
           [](const CLI::Option* given) { return given->count() > 0 && !given->get_callback_run(); })) {
    try {
      option->run_callback();
    } catch (const CLI::ParseError& one) {
      lines.push_back(wrong_value(*option, one.what()));
    } catch (const std::exception&) {  // an error of the command itself, which does not run here
    }
  }
  const auto is_reported = [&](const std::string& line) { return line.starts_with(error.what()); };
  if (std::none_of(lines.begin(), lines.end(), is_reported)) lines.insert(lines.begin(), error.what());
  return lines;
}

// The message of CLI11, or our own if a flag with one value is given several times.
std::string in_our_words(const std::string& message) {
  const size_t end = message.find(": At Most 1 required");
  return end == std::string::npos
             ? message
             : message.substr(0, end) + ": is given more than once; leave out all but one";
}

}  // namespace

std::vector<std::string> usage_errors(const CLI::App& application, const CLI::ParseError& error) {
  const std::vector<CLI::App*> commands = application.get_subcommands();
  if (commands.empty()) return {no_command(application)};
  CLI::App& command = *commands.front();
  // Misspelled flags come first. Missing flags, and values without a flag, are often their consequence.
  const std::vector<std::string> words = application.remaining(true);
  std::vector<std::string> lines;
  for (const std::string& word : words)
    if (word.starts_with("-") && word != "-")
      if (std::string line = no_flag(application, command, word);
          std::find(lines.begin(), lines.end(), line) == lines.end())
        lines.push_back(std::move(line));
  const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error),
             is_left = dynamic_cast<const CLI::ExtrasError*>(&error);
  if ((is_missing || is_left) && !lines.empty()) return lines;
  if (is_left && !words.empty())
    return {fmt::format("{}: belongs to no flag; a value with spaces needs quotes", words.front())};
  const bool is_of_value =
      dynamic_cast<const CLI::ValidationError*>(&error) || dynamic_cast<const CLI::ConversionError*>(&error);
  for (std::string& line :
       is_of_value ? wrong_values(command, error) : std::vector<std::string>{in_our_words(error.what())})
    lines.push_back(std::move(line));
  return lines;
}

void require_values(const CLI::App& application, const std::vector<std::string>& words) {
  if (words.size() < 2) return;
  const auto commands =
      application.get_subcommands([&](const CLI::App* one) { return one->get_name() == words[1]; });
  if (commands.empty()) return;
  const CLI::App& command = *commands.front();
  const std::vector<std::string> flags = flags_of(command);
  const auto is_flag = [&](const std::string& word) {
    if (word == "-h") return true;
    if (!word.starts_with("--") || word.size() < 3) return false;
    const std::string name = without_value(word);
    constexpr std::string_view no = "--no-";  // resets a setting of a run
    return has_flag(command, name) ||
           (name.starts_with(no) && has_flag(command, "--" + name.substr(no.size()))) ||
           foreign_flag(name, flags).has_value();
  };
  for (size_t i = 2; i + 1 < words.size() && words[i] != "--"; ++i) {
    const CLI::Option* const option = option_named(command, words[i]);
    if (!option || option->get_expected_max() == 0) continue;
    if (is_flag(words[i + 1]))
      throw Failure(exit_usage,
                    fmt::format("{} needs a value; {} is a flag (to use it as the value, write {}={})",
                                words[i], words[i + 1], words[i], words[i + 1]));
    ++i;  // skip the value
  }
}

}  // namespace command
