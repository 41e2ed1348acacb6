// Files of calibrated profiles, which `stowage calibrate` writes and --device takes.
#pragma once
#include <string>
#include <string_view>

#include "stowage.h"

namespace command {

// Whether the value of --device is a file rather than the name of a device.
bool is_profile_file(const std::string& device);
// Reads a calibrated profile as text. Every failure names the file.
std::string read_profile_file(const std::string& path);
// Throws a Failure that names `path` if the text is not a profile.
void require_profile(const std::string& path, std::string_view text);
stw_profile_info read_profile(std::string_view text);

// Prints the conditions of the measurement. Then prints each kind of op with its share of the peak
// performance and of the step's time, longest first.
void print_profile(std::string_view text);

}  // namespace command
