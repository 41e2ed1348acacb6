// Fuzzes the files of a run's folder that the command reads: settings.json and, after a byte 0xFF,
// checkpoint.stw, whose header `inspect` shows. Only a Failure may escape.
#include <optional>

#include "base/failure.h"
#include "base/kept_options.h"
#include "base/utf8.h"
#include "input.h"
#include "run/checkpoint_header.h"
#include "run/run_folder.h"

using namespace command;

namespace {

template <class Read>
bool or_failure_of(const Read& read) {
  try {
    read();
    return true;
  } catch (const Failure&) { return false; }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const auto parts = fuzz::parts_of(data, size, 2);
  const RunFolder run(folder.path());
  folder.write("settings.json", parts[0]);
  std::vector<std::string> options;
  const bool whole = or_failure_of([&] { options = options_in(parts[0], run.settings()); });
  for (const std::string& option : options)
    fuzz::require(option.starts_with("--") && valid_utf8(option) == option, "an option is a word to print");
  fuzz::require(or_failure_of([&] { data_of_run(folder.path()); }) == whole,
                "all readers of settings take the same");
  fuzz::require(or_failure_of([&] { setting_of_run(folder.path(), "data"); }) == whole,
                "all readers of settings take the same");
  const std::string checkpoint = folder.write("checkpoint.stw", parts[1]);
  const auto header = checkpoint_header(checkpoint);
  fuzz::require(!header || header->size() + 24 <= parts[1].size(), "a header lies in its file");
  for (const uint64_t byte : {uint64_t{0}, uint64_t{parts[1].size() / 2}, UINT64_MAX})
    fuzz::require(header || checkpoint_section(checkpoint, byte) == "the header", "a byte lies in something");
  return 0;
}
