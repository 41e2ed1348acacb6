// Draws a run's losses as a self-contained SVG.
#pragma once
#include <string>

#include "run/metrics.h"

namespace command {

// The picture has the training loss as a faint line, its smoothed curve and the evaluations as points.
// Accuracies, if there are any, have an axis of their own.
std::string loss_curve_svg(const MetricHistory& history, const std::string& title);

}  // namespace command
