// A picture of a run's losses, as SVG text without anything from outside.
#pragma once
#include <string>

#include "run/metrics.h"

namespace command {

// The training loss faintly as it was and clearly smoothed, evaluations as points, their accuracies, where there are some, on an axis of their own.
std::string loss_curve_svg(const MetricHistory& history, const std::string& title);

}  // namespace command
