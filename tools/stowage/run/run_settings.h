// The options of a run, kept in its folder (settings.json), so that --resume does not need them again.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace command {

// The given options of `train` as a JSON object, without those that say where the run is read and written.
// Files have absolute paths. Bytes that are not UTF-8 are kept (json_bytes). `document_end` counts as given,
// because the run's folder must keep the token that ends an example.
std::string options_json(const CLI::App& train, std::optional<uint32_t> document_end);
// A file of the run that --resume reads, with its text.
struct KeptFile {
  std::string name, text;
};
// The text of settings.json: the options, stw_dataset_info.content_hash of the training data, and checksums
// of the kept files and of the text itself.
std::string settings_json(const std::string& options, uint64_t data, const std::vector<KeptFile>& kept);
// Throws a Failure if a file that --resume reads does not have the checksum in settings.json. Files that the
// command line replaces are not checked. Settings of older runs have no checksums.
void check_files_of_run(const std::string& folder, const std::vector<std::string>& replaced);

// Completes a command line of `train` with --resume by the options of that run. Options of the run do not
// count if the line gives them itself, gives others that exclude them, or resets them with --no-NAME, which
// is removed from the line. Throws a Failure if there is no checkpoint, or if settings.json is damaged. Older
// runs have no settings.json.
std::vector<std::string> with_settings_of_run(const CLI::App& train, std::vector<std::string> words);

}  // namespace command
