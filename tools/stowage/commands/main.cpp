// The command `stowage`: finds the subcommand, and turns every failure into a line on stderr, or one for each
// wrong flag, and an exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/failure.h"
#include "base/interrupt.h"
#include "base/messages.h"
#include "commands/commands.h"
#include "flags/usage_error.h"
#include "run/run_settings.h"
#include "stowage.h"

namespace {

// CLI11's help without the checks of each value: the error messages name them.
class Help : public CLI::Formatter {
 public:
  explicit Help(std::string required) : required_(std::move(required)) {}
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();
    return (type.empty() ? "" : " " + type.substr(0, type.find(':'))) +
           (option->get_required() ? required_ : "");
  }

 private:
  std::string required_;  // the text after an option that must be given
};

int report(int exit_code, std::string line) {
  while (!line.empty() && line.back() == '\n') line.pop_back();
  for (char& c : line)
    if (c == '\n' || c == '\t') c = ' ';
  std::fflush(stdout);
  command::complain("stowage: error: {}", line);
  return exit_code;
}

// The exit code of a command that succeeded: it fails if its output could not be written.
int finish() {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return command::exit_done;
  return report(command::exit_failed, "standard output: cannot write");
}

}  // namespace

int main(int count, char** words) {
  command::occupy_standard_descriptors();
  command::outlive_file_limits();
  command::end_at_signals();
  CLI::App application{"Train neural networks on one device in exactly the memory it has."};
  application.name("stowage");
  application.require_subcommand(1);
  application.option_defaults()->disable_flag_override();  // refuses values of flags, such as --overwrite=0
  application.formatter(std::make_shared<Help>(" (required)"));
  application.set_version_flag(
      "--version", [] { return std::string(stw_build_info()); }, "Print the version and the build options.");
  application.footer(
      "Exit codes: 0 done, 1 failed, 2 usage, 3 does not fit, 128 plus the signal's number after a signal: "
      "130 Ctrl-C, 143 SIGTERM.\n"
      "`stowage COMMAND --help` explains a command, and `stowage help` shows the guide.");
  command::add_plan(application);
  command::add_train(application, count > 0 ? words[0] : "stowage");
  command::add_eval(application);
  command::add_generate(application);
  command::add_classify(application);
  command::add_inspect(application);
  command::add_devices(application);
  command::add_calibrate(application);
  command::add_merge(application);
  command::add_tokenize(application);
  command::add_pack(application);
  command::add_help(application);
  CLI::App& train = *application.get_subcommand("train");
  train.formatter(
      std::make_shared<Help>(" (required unless --resume)"));  // which takes them from the run's settings
  try {
    command::require_values(application, {words, words + count});
    std::vector<std::string> line = command::with_settings_of_run(train, {words, words + count});
    std::reverse(line.begin(), line.end());  // CLI11 takes the words from the end
    if (!line.empty()) line.pop_back();
    application.parse(std::move(line));
    return finish();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help or --version
      std::ostringstream text;
      application.exit(error, text, text);
      command::write_to_stdout(text.str());
      return finish();
    }
    for (const std::string& line : command::usage_errors(application, error))
      report(command::exit_usage, line);
    return command::exit_usage;
  } catch (const command::Stopped& stopped) {
    std::fflush(stdout);
    return stopped.exit_code;
  } catch (const command::Failure& failure) {
    return report(failure.exit_code, failure.what());
  } catch (const std::bad_alloc&) {
    return report(command::exit_failed, "not enough memory");
  } catch (const std::exception& error) { return report(command::exit_failed, error.what()); }
}
