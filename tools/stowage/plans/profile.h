// Files of calibrated profiles, which `stowage calibrate` writes and --device takes.
#pragma once
#include <string>
#include <string_view>

#include "stowage.h"

namespace command {

// Whether the value of --device is a file instead of the name of a device.
bool is_profile_file(const std::string& device);
// The text of a file that is a calibrated profile. Every failure names the file.
std::string read_profile_file(const std::string& path);
// Checks that the text of a file is a profile.
void require_profile(const std::string& path, std::string_view text);
stw_profile_info read_profile(std::string_view text);

// Prints the conditions of the measurement, and each kind of op with its share of the peak and of the step,
// the longest first.
void print_profile(std::string_view text);

}  // namespace command
