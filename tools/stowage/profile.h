// Calibrated profiles as files: what `stowage calibrate` writes, and what --device takes.
#pragma once
#include <string>
#include <string_view>

#include "stowage.h"

namespace command {

// Whether --device means a file, not a device's name.
bool is_profile_file(const std::string& device);
// The text of a file that is a calibrated profile. Every failure names the file.
std::string read_profile_file(const std::string& path);
void require_profile(const std::string& path, std::string_view text);   // the text of that file is one
stw_profile_info read_profile(std::string_view text);

// What was measured, and each kind of op with its share of the peak and of the step, the longest first.
void print_profile(std::string_view text);

}  // namespace command
