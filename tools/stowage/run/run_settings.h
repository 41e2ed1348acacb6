// The options that a run was given, kept in its folder (settings.json), so that --resume needs none of them again.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace command {

// The options that `train` was given but for those that say where this run is read from and written to, as a JSON object. Files are
// named by absolute paths. Bytes that are no UTF-8 are kept (json_bytes).
std::string options_json(const CLI::App& train);
// A file of the run that --resume reads, and its text.
struct KeptFile { std::string name, text; };
// The file of these options, of stw_dataset_info.content_hash of what the run is trained on, and of checksums of those files and of itself.
std::string settings_json(const std::string& options, uint64_t data, const std::vector<KeptFile>& kept);
// Throws a Failure where a file that --resume reads, and that the command line does not replace, is not what settings.json knows it to be.
// Settings of older runs know nothing of it.
void check_files_of_run(const std::string& folder, const std::vector<std::string>& replaced);

// `words` is a command line. Where it is one of `train` with --resume, it gets what that run was given, but for options that the
// line gives itself, that exclude those, or that it takes back with --no-NAME, which it then has no more. Throws a Failure where
// there is no checkpoint to go on from, or where settings.json is damaged; older runs have none.
std::vector<std::string> with_settings_of_run(const CLI::App& train, std::vector<std::string> words);

}  // namespace command
