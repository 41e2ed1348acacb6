#include "data/loss_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "base/utf8.h"

namespace command {
namespace {

struct LossMark {
  const char* name;
  bool learned;      // what true, or 1, means
  bool of_examples;  // a whole example may have it too
};
constexpr LossMark loss_marks[] = {{"weight", true, true},
                                   {"train", true, true},
                                   {"training", true, false},
                                   {"loss", true, false},
                                   {"masked", false, true}};
// Marks of parts of a message, such as characters or tokens.
constexpr const char* finer_marks[] = {"train_detail", "training_detail", "loss_mask",    "loss_scale",
                                       "loss_weight",  "loss_weights",    "token_weights"};

// The value of true, false, or a number equal to 0 or 1. Nothing for other values.
std::optional<bool> truth_of(const Json& value) {
  if (const bool* const truth = value.as_bool()) return *truth;
  if (!is_number(value)) return std::nullopt;
  double number = -1;
  const std::string_view text = text_of(value);
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || (number != 0 && number != 1)) return std::nullopt;
  return number == 1;
}

bool has_content(const JsonView& mark) {
  return !mark.is_null() && !(mark.is_array() && mark.raw_elements().empty());
}

}  // namespace

bool is_loss_mark(std::string_view member) {
  return std::any_of(std::begin(loss_marks), std::end(loss_marks),
                     [&](const LossMark& mark) { return mark.name == member; }) ||
         std::find(std::begin(finer_marks), std::end(finer_marks), member) != std::end(finer_marks);
}

std::optional<bool> loss_mark(const JsonView& object, Marked kind) {
  for (const char* name : finer_marks)
    if (const JsonView mark = object.at(name); has_content(mark))
      mark.fail(fmt::format(
          "no such mark: {} is learned whole or not at all (\"weight\": 0 takes it out of the loss)",
          kind == Marked::message ? "a message" : "an example"));
  std::optional<bool> learned;
  for (const LossMark& known : loss_marks) {
    if (kind == Marked::example && !known.of_examples) continue;
    const JsonView mark = object.at(known.name);
    if (mark.is_null()) continue;
    const std::optional<bool> truth = truth_of(mark.raw());
    if (!truth) {
      const bool has_text = is_number(mark.raw()) || mark.is_text();
      mark.fail(fmt::format("0 or 1 (or false or true), which says whether it is learned{}",
                            has_text ? fmt::format(", found {}", shortened(text_of(mark.raw()))) : ""));
    }
    const bool is_learned = *truth == known.learned;
    if (learned && *learned != is_learned) mark.fail("a mark that agrees with the other marks");
    learned = is_learned;
  }
  return learned;
}

}  // namespace command
