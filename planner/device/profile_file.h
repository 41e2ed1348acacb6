// Calibrated profiles as JSON: the file that `stowage calibrate` writes, and a part of every plan made with one. The
// embedded profile of the device says the rest; a profile that came from text prices like the one it was written from.
#pragma once
#include <string>
#include <string_view>

#include "planner/device/device.h"
#include "planner/base/json.h"

namespace stw {

// Of a profile that was calibrated.
Json profile_json(const DeviceProfile& profile);
std::string profile_to_json(const DeviceProfile& profile);
// Errors: corrupt, naming what was expected and what was found: no profile, another version, a device or an op that is
// not known, a figure out of its range (calibration.h).
Result<DeviceProfile> profile_from(const Json& body);
Result<DeviceProfile> profile_from_json(std::string_view text);

}  // namespace stw
