// `stowage help`: the pages of the guide (docs/), as they were when the command was built.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "commands.h"
#include "failure.h"
#include "guide.h"

namespace command {
namespace {

void show_topics() {
  fmt::print("`stowage help TOPIC` shows a page of the guide:\n\n");
  for (const GuidePage& page : guide_pages()) fmt::print("  {:<14} {}\n", page.topic, page.answers);
  fmt::print("\n`stowage COMMAND --help` lists the flags of a command.\n");
}

void show(const std::string& topic) {
  if (topic.empty()) return show_topics();
  const auto pages = guide_pages();
  const auto page = std::find_if(pages.begin(), pages.end(), [&](const GuidePage& each) { return each.topic == topic; });
  if (page == pages.end()) throw Failure(exit_usage, fmt::format("there is no topic {}: `stowage help` lists them", topic));
  fmt::print("{}", page->text);
}

}  // namespace

void add_help(CLI::App& application) {
  CLI::App* command = application.add_subcommand("help", "Show a page of the guide, or the list of its pages.");
  const auto topic = std::make_shared<std::string>();
  command->add_option("TOPIC", *topic, "A page. Default: the list of them.");
  command->callback([topic] { show(*topic); });
}

}  // namespace command
