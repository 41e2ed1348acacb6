// Calibrated profiles as JSON: the file that `stowage calibrate` writes. A plan that was made with a
// calibrated profile contains it. Figures that the file lacks are those of the device's embedded profile. A
// profile that is written and read back gives exactly the same times.
#pragma once
#include <string>
#include <string_view>

#include "planner/base/json.h"
#include "planner/device/device.h"

namespace stw {

// `profile` must be calibrated.
Json profile_json(const DeviceProfile& profile);
std::string profile_to_json(const DeviceProfile& profile);
// Errors: corrupt, naming what was expected and what was found: text that is not a profile, another version,
// an unknown device or op, a figure out of its range (calibration.h).
Result<DeviceProfile> profile_from(const Json& body);
Result<DeviceProfile> profile_from_json(std::string_view text);

}  // namespace stw
