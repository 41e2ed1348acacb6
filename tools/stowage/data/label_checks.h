// What the labels of texts are: names, numbers, or ones and zeros. Refuses labels that would be learned as
// something else than their author meant, and warns of labels that look wrong.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/labelled.h"

namespace command {

// All different labels, in numeric order if all are whole numbers, else in the order of their bytes.
std::vector<std::string> labels_of(std::span<const LabelledText> texts);

// Throws if all labels are numbers and two of them are equal, such as "0" and "0.0". Warns of labels that
// look alike.
void check_names(std::span<const std::string> names, const std::string& path);
// Warns if there are so many labels that most of them cannot be learned.
void check_count(size_t labels, size_t texts, const std::string& path);

// The task (STW_TASK_*) that has such labels. Refuses words such as "nan" among numbers. Numbers are
// classes if each text has one whole number and no number between the smallest and the largest is missing.
// Lists of numbers are names if their lengths differ. Other numbers could be classes or values: the Failure
// says which flag asks for each.
uint32_t task_of(std::span<const LabelledText> texts, const std::string& path);

// The number of labels, if each text has a list of ones and zeros, one for each label. Nothing for lists of
// other values, of different lengths, and of one value.
std::optional<size_t> ones_and_zeros(std::span<const LabelledText> texts);
// Throws a Failure if lists of labels have numbers that are no names: ones and zeros, or a number twice.
void check_lists(std::span<const LabelledText> texts, const std::string& path);

// A label as a number. Throws a Failure that names the text's place if it is none.
float number_in(const LabelledText& text, const std::string& word);
// How many numbers each text has. Throws a Failure that names the line if a text has no number, or another
// count than the first text.
size_t numbers_of_each(std::span<const LabelledText> texts);

}  // namespace command
