// `stowage pack`: computes offsets for the buffers in a CSV file, so that buffers that are alive at the same
// time do not overlap.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <charconv>
#include <memory>

#include "base/files.h"
#include "base/handles.h"
#include "base/messages.h"
#include "base/utf8.h"
#include "commands/commands.h"
#include "flags/flags.h"
#include "flags/number_checks.h"
#include "plans/lifetimes.h"

namespace command {
namespace {

struct PackCommand {
  std::string file, out;
  std::optional<uint64_t> capacity;
  uint64_t node_limit = 1'000'000;
  bool ignores_offsets = false;

  void run() const {
    if (capacity && *capacity == 0) throw Failure(exit_usage, "--capacity: expected more than 0 bytes");
    const bool standard_input = file == "-";
    const std::string name = standard_input ? "standard input" : file;
    const LifetimeTable table =
        parse_lifetimes(read_text(standard_input ? "/dev/stdin" : file), name, ignores_offsets);
    for (const std::string& column : table.other_columns)
      complain(
          "stowage: warning: {}: column \"{}\" is copied and constrains nothing; the columns that constrain "
          "are alignment, gaps and offset",
          name, shortened(column));
    auto options = sized<stw_pack_options>();
    options.capacity = capacity.value_or(0);
    options.node_limit = node_limit;
    options.constraints = table.constraints.data();
    auto result = sized<stw_pack_result>();
    std::vector<uint64_t> offsets(table.lifetimes.size());
    try {
      call([&](stw_error* error) {
        return stw_pack(offsets.data(), table.lifetimes.data(), offsets.size(), &options, &result, error);
      });
    } catch (const Failure& failure) {  // a usage error of the library is an error in the file
      throw Failure(
          failure.exit_code == exit_usage ? exit_failed : failure.exit_code,
          failure.exit_code == exit_usage ? name + ": " + with_ids(failure.what(), table) : failure.what());
    }
    const std::string text = with_offsets(table, offsets);
    if (out.empty()) fmt::print("{}", text);
    else write_text(out, text);
    const double gap =
        result.bound ? static_cast<double>(result.height) / static_cast<double>(result.bound) - 1 : 0;
    complain("height {}, bound {}, gap {:.2f} %: {}{}", result.height, result.bound, gap * 100,
             verdict(result),
             table.given_offsets == 0
                 ? ""
                 : fmt::format("; {} of {} offsets come from the file (--ignore-offsets replaces them)",
                               table.given_offsets, table.rows.size()));
  }

  // Replaces the library's indices in a message with the ids of the buffers.
  static std::string with_ids(std::string message, const LifetimeTable& table) {
    constexpr std::string_view numbered = "lifetimes[";
    for (size_t at = 0; (at = message.find(numbered, at)) != std::string::npos;) {
      size_t row = 0;
      const char* const first = message.data() + at + numbered.size();
      const auto [end, problem] = std::from_chars(first, message.data() + message.size(), row);
      if (problem != std::errc() || row >= table.rows.size()) return message;
      const std::string id = fmt::format("buffer \"{}\"", shortened(table.rows[row][table.id]));
      message.replace(at, static_cast<size_t>(end - message.data()) + 1 - at, id);
      at += id.size();
    }
    return message;
  }

  const char* verdict(const stw_pack_result& result) const {
    if (result.answer == STW_PACK_OPTIMAL) return "proven: no placement is lower";
    return capacity ? "within the capacity" : "not proven to be the lowest";
  }
};

}  // namespace

void add_pack(CLI::App& application) {
  auto self = std::make_shared<PackCommand>();
  CLI::App& command =
      *application.add_subcommand("pack", "Assign offsets in shared memory to buffers with lifetimes.");
  command
      .add_option("FILE", self->file,
                  "CSV with the columns id,lower,upper,size in any order. -: standard input.\n"
                  "A buffer is alive in [lower, upper). These columns constrain its place. alignment: its\n"
                  "offset is a multiple of it. offset: a row with an offset keeps it. gaps: LOWER-UPPER is\n"
                  "a time without bytes, LOWER-UPPER@FIRST:END a time with only those bytes; blanks\n"
                  "separate several gaps.")
      ->required()
      ->type_name("");
  add_bytes(command, "--capacity", self->capacity,
            "Bytes that the buffers must fit into. Default: as few as possible.");
  command
      .add_option("--node-limit", self->node_limit, "Decisions that the search may take before it gives up.")
      ->check(positive())
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--out", self->out, "Write the rows with their offsets to FILE instead of standard output.")
      ->type_name("FILE");
  command.add_flag("--ignore-offsets", self->ignores_offsets,
                   "Give every buffer a new offset, even if its row has one.");
  command.footer(
      "Exit code 3: no placement within the capacity exists or was found. Nothing is written then.");
  command.callback([self] { self->run(); });
}

}  // namespace command
