// `stowage pack`: offsets for the buffers of a CSV, so that those alive at the same time do not overlap.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "commands.h"
#include "files.h"
#include "flags.h"
#include "handles.h"
#include "lifetimes.h"
#include "messages.h"
#include "number_checks.h"

namespace command {
namespace {

struct PackCommand {
  std::string file, out;
  std::optional<uint64_t> capacity;
  uint64_t node_limit = 1'000'000;

  void run() const {
    if (capacity && *capacity == 0) throw Failure(exit_usage, "--capacity: expected more than 0 bytes");
    const bool standard_input = file == "-";
    const LifetimeTable table =
        parse_lifetimes(read_text(standard_input ? "/dev/stdin" : file), standard_input ? "standard input" : file);
    auto options = sized<stw_pack_options>();
    options.capacity = capacity.value_or(0);
    options.node_limit = node_limit;
    auto result = sized<stw_pack_result>();
    std::vector<uint64_t> offsets(table.lifetimes.size());
    try {
      call([&](stw_error* error) {
        return stw_pack(offsets.data(), table.lifetimes.data(), offsets.size(), &options, &result, error);
      });
    } catch (const Failure& failure) {   // of what stands in the file
      throw Failure(failure.exit_code == exit_usage ? exit_failed : failure.exit_code, failure.what());
    }
    const std::string text = with_offsets(table, offsets);
    if (out.empty())
      fmt::print("{}", text);
    else
      write_text(out, text);
    const double gap = result.bound ? static_cast<double>(result.height) / static_cast<double>(result.bound) - 1 : 0;
    complain("height {}, bound {}, gap {:.2f} %: {}", result.height, result.bound, gap * 100, verdict(result));
  }

  const char* verdict(const stw_pack_result& result) const {
    if (result.answer == STW_PACK_OPTIMAL) return "proven, no placement is lower";
    return capacity ? "within the capacity" : "not proven to be the lowest";
  }
};

}  // namespace

void add_pack(CLI::App& application) {
  auto self = std::make_shared<PackCommand>();
  CLI::App& command = *application.add_subcommand("pack", "Give buffers with lifetimes offsets in shared memory.");
  command
      .add_option("FILE", self->file,
                  "CSV with the columns id,lower,upper,size in any order; alive in [lower, upper). -: standard input.")
      ->required()
      ->type_name("");
  add_bytes(command, "--capacity", self->capacity, "Bytes to fit into. Default: as low as possible.");
  command.add_option("--node-limit", self->node_limit, "Decisions that the search may take before it gives up.")
      ->check(positive())
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--out", self->out, "Write the rows with their offsets there, not to standard output.")
      ->type_name("FILE");
  command.footer("Exit code 3: the capacity is proven or found out of reach; nothing is written then.");
  command.callback([self] { self->run(); });
}

}  // namespace command
