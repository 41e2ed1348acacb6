#include "run/loss_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/units.h"
#include "base/utf8.h"

namespace command {
namespace {

constexpr double width = 800, height = 450, left = 70, margin = 20, margin_of_axis = 64, top = 50,
                 bottom = 55;         // user units
constexpr size_t drawn_points = 800;  // longer curves are reduced to means

using Points = std::vector<MetricPoint>;

Points thinned(const Points& points) {
  const size_t bucket = (points.size() + drawn_points - 1) / drawn_points;
  if (bucket <= 1) return points;
  Points out;
  for (size_t first = 0; first < points.size(); first += bucket) {
    const size_t last = std::min(first + bucket, points.size());
    MetricPoint mean{0, 0};
    for (size_t index = first; index < last; ++index) {
      mean.step += points[index].step;
      mean.value += points[index].value;
    }
    const double count = static_cast<double>(last - first);
    out.push_back({mean.step / count, mean.value / count});
  }
  return out;
}

// Means over a window of about a twentieth of the run. The window is centred, so that the curve does not lag
// and meets the evaluations. At the beginning, where the curve is steep, the window is smaller on both sides.
// At the end it loses only the points that do not exist, so that the curve does not end with the noise of the
// last step.
Points smoothed(const Points& points) {
  const size_t reach = points.size() / 40;
  Points out = points;
  double sum = 0;
  size_t first = 0, last = 0;  // the window is [first, last)
  for (size_t index = 0; index < points.size(); ++index) {
    const size_t before = std::min(reach, index), after = std::min(before, points.size() - 1 - index);
    for (; last < index + after + 1; ++last) sum += points[last].value;
    for (; first < index - before; ++first) sum -= points[first].value;
    out[index].value = sum / static_cast<double>(last - first);
  }
  return out;
}

struct Axis {
  double low, high, step;
  double place(double value, double from, double to) const {
    return from + (value - low) / (high - low) * (to - from);
  }
};

// An axis with about six ticks, at multiples of 1, 2 or 5 times a power of ten. Both ends are ticks, and
// ticks are at least `closest` apart. The range is wide enough for ticks to be different numbers, even for
// losses beyond the precision of a double.
Axis round_axis(double low, double high, double closest) {
  const double least = 1e-9 * std::max(std::abs(low), std::abs(high));
  if (!(high - low > least)) high = low + std::max(1.0, least);
  const double raw = (high - low) / 6, power = std::pow(10, std::floor(std::log10(raw)));
  const double factor = raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : raw / power < 7.5 ? 5 : 10;
  const double step = std::max(factor * power, closest);
  return {std::floor(low / step) * step, std::ceil(high / step) * step, step};
}

class Picture {
 public:
  // Accuracies have an axis of their own on the right.
  Picture(const Axis& steps, const Axis& losses, bool with_accuracy)
      : steps_(steps), losses_(losses), end_(width - (with_accuracy ? margin_of_axis : margin)) {}

  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    text_ += '\n';
  }
  double x(double step) const { return steps_.place(step, left, end_); }
  double y(double loss) const { return losses_.place(loss, height - bottom, top); }
  static double y_of_share(double accuracy) { return Axis{0, 1, 0.2}.place(accuracy, height - bottom, top); }

  void axes() {
    // The number of digits that distinguishes neighbouring ticks.
    const double largest = std::max(std::abs(losses_.low), std::abs(losses_.high));
    const int digits = std::clamp(
        static_cast<int>(std::floor(std::log10(largest)) - std::floor(std::log10(losses_.step))) + 1, 4, 17);
    for (double value = losses_.low; value <= losses_.high + losses_.step / 2; value += losses_.step) {
      add(R"(<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}" stroke="#e4e4e4"/>)", left, end_, y(value),
          y(value));
      add(R"(<text x="{}" y="{:.1f}" text-anchor="end">{:.{}g}</text>)", left - 8, y(value) + 4,
          std::round(value / losses_.step) * losses_.step, digits);
    }
    for (double value = steps_.low; value <= steps_.high + steps_.step / 2; value += steps_.step)
      add(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", x(value), height - bottom + 20,
          grouped(static_cast<uint64_t>(std::min(value + 0.5, 0x1p63))));
    add(R"(<line x1="{}" x2="{}" y1="{}" y2="{}" stroke="#555"/>)", left, end_, height - bottom,
        height - bottom);
    add(R"(<text x="{}" y="{}" text-anchor="middle">step</text>)", (left + end_) / 2, height - 12);
    add(R"svg(<text transform="translate(18 {}) rotate(-90)" text-anchor="middle">loss</text>)svg",
        (top + height - bottom) / 2);
  }
  void axis_of_accuracy() {
    for (int percent = 0; percent <= 100; percent += 20)
      add(R"(<text x="{}" y="{:.1f}">{} %</text>)", end_ + 8, y_of_share(percent / 100.0) + 4, percent);
    add(R"svg(<text transform="translate({} {}) rotate(90)" text-anchor="middle">accuracy</text>)svg",
        width - 15, (top + height - bottom) / 2);
  }
  void accuracies(const Points& points, const char* colour) {
    line(points, y_of_share, fmt::format(R"(stroke="{}" stroke-width="1.5" stroke-dasharray="5 3")", colour));
    for (const MetricPoint& point : points)
      add(R"(<rect x="{:.1f}" y="{:.1f}" width="7" height="7" fill="{}"/>)", x(point.step) - 3.5,
          y_of_share(point.value) - 3.5, colour);
  }
  void curve(const Points& points, const char* style) {
    line(
        points, [this](double loss) { return y(loss); }, style);
  }
  std::string take() { return std::move(text_); }

 private:
  template <class Height>
  void line(const Points& points, const Height& height_of, const std::string& style) {
    text_ += "<polyline fill=\"none\" points=\"";
    for (const MetricPoint& point : points)
      fmt::format_to(std::back_inserter(text_), "{:.1f},{:.1f} ", x(point.step), height_of(point.value));
    add("\" {}/>", style);
  }

  const Axis steps_, losses_;
  const double end_;  // right end of the horizontal axis
  std::string text_;
};

// XML cannot represent control characters.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    if (c == '<' || c == '&' || c == '>') out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : "&gt;";
    else if (static_cast<unsigned char>(c) < 0x20) out += replacement_character;
    else out += c;
  }
  return out;
}

}  // namespace

std::string loss_curve_svg(const MetricHistory& history, const std::string& title) {
  const Points losses = thinned(history.losses);
  double low = HUGE_VAL, high = -HUGE_VAL, last = 1;
  for (const Points* points : {&losses, &history.evaluations})
    for (const MetricPoint& point : *points) {
      low = std::min(low, point.value);
      high = std::max(high, point.value);
      last = std::max(last, point.step);
    }
  if (!(high >= low)) low = 0, high = 1;
  Axis steps = round_axis(0, last, 1);
  steps.high = std::max(last, 1.0);
  const bool with_accuracy = !history.accuracies.empty();
  constexpr const char* colour_of_accuracy = "#3a8a4d";
  Picture picture(steps, round_axis(low, high, 0), with_accuracy);
  picture.add(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="sans-serif" )"
              R"(font-size="13">)",
              width, height);
  picture.add(R"(<rect width="{}" height="{}" fill="#fff"/>)", width, height);
  picture.add(R"(<text x="{}" y="28" font-size="16" fill="#111">{}</text>)", left, escaped(title));
  picture.add(R"(<g fill="#444">)");
  picture.axes();
  if (with_accuracy) picture.axis_of_accuracy();
  picture.add("</g>");
  picture.curve(losses, R"(stroke="#9ec5e8" stroke-width="1")");
  picture.curve(smoothed(losses), R"(stroke="#1f6fb2" stroke-width="2")");
  for (const MetricPoint& point : history.evaluations)
    picture.add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="#d1495b"/>)", picture.x(point.step),
                picture.y(point.value));
  if (with_accuracy) picture.accuracies(history.accuracies, colour_of_accuracy);
  picture.add(R"svg(<g transform="translate({} {})"><line x2="24" stroke="#1f6fb2" stroke-width="2"/>)svg",
              width - (with_accuracy ? 320 : 240), 24);
  picture.add(R"(<text x="30" y="4">training</text><circle cx="112" r="4" fill="#d1495b"/>)");
  picture.add(R"(<text x="122" y="4">evaluation</text>)");
  if (with_accuracy)
    picture.add(
        R"(<rect x="206" y="-3.5" width="7" height="7" fill="{}"/><text x="219" y="4">accuracy</text>)",
        colour_of_accuracy);
  picture.add("</g>");
  picture.add("</svg>");
  return picture.take();
}

}  // namespace command
