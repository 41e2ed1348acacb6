// settings.json of a run: the options that the run was given. This file reads them; run_settings.h writes
// them.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_reader.h"

namespace command {

inline constexpr std::string_view settings_format = "stowage-settings";
inline constexpr uint64_t settings_version = 1;
// Precedes the checksum, which covers all text before this field.
inline constexpr std::string_view checksum_field = ", \"checksum\": \"";

// Reads the text of settings.json. Calls option(reader, name) for each option, which must read the values.
// Returns the content hash of the run's data. `recorded` gets the names and checksums of the run's other
// files. Throws a Failure that names `path` if the text is damaged.
using ReadOption = std::function<void(JsonReader& reader, const std::string& name)>;
std::optional<uint64_t> for_options(const std::string& text, const std::string& path,
                                    const ReadOption& option,
                                    std::vector<std::pair<std::string, std::string>>* recorded = nullptr);
// The same for a run's folder. Empty if the run has no settings.json.
std::optional<uint64_t> for_settings(const std::string& folder, const ReadOption& option);

// The options in the text of a settings.json, as on a command line. Throws a Failure that names `path` if the
// text is damaged.
std::vector<std::string> options_in(const std::string& text, const std::string& path);
// The content hash of the data on which a run was last trained. Empty if it is unknown.
std::optional<uint64_t> data_of_run(const std::string& folder);
// Whether a run was given an option, such as the flag "eval-tail".
bool run_has_option(const std::string& folder, const std::string& name);
// The last value that a run was given for an option, such as "document-end". Empty if there is none.
std::optional<std::string> setting_of_run(const std::string& folder, const std::string& name);
// All values of an option, such as the files of "data".
std::vector<std::string> settings_of_run(const std::string& folder, const std::string& name);

}  // namespace command
