// Profiles as JSON. Version 1 is the file that `stowage calibrate` writes; figures that it lacks are those of
// the device's embedded profile. Version 2 has the figures of a card that was not calibrated: rated speeds,
// power and shares. A plan that was made with such a file contains it. A profile that is written and read
// back gives exactly the same times.
#pragma once
#include <string>
#include <string_view>

#include "planner/base/json.h"
#include "planner/device/device.h"

namespace stw {

// Version 1 if the profile is calibrated. Otherwise version 2: the profile must be that of a GPU.
Json profile_json(const DeviceProfile& profile);
std::string profile_to_json(const DeviceProfile& profile);
// Errors: corrupt, naming what was expected and what was found: text that is not a profile, another version,
// an unknown device or op, a figure out of its range (calibration.h).
Result<DeviceProfile> profile_from(const Json& body);
Result<DeviceProfile> profile_from_json(std::string_view text);

}  // namespace stw
