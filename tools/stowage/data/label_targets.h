// Makes the targets of a dataset from the labels of texts, and documents from the texts.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/examples.h"
#include "data/label_lists.h"
#include "data/labelled.h"

namespace command {

// The index of each text's label in `labels`, the model's labels; see label_examples.
std::vector<uint32_t> label_numbers(std::span<const LabelledText> texts, std::span<const std::string> labels);
// The indices of each text's labels. See label_examples.
LabelLists label_lists(std::span<const LabelledText> texts, std::span<const std::string> labels);
// The numbers of each text, of which the model gives `width`.
std::vector<float> number_values(std::span<const LabelledText> texts, size_t width);

// Throws a failure unless a model for this task can learn the labels of all texts.
void require_labels(std::span<const LabelledText> texts, std::span<const std::string> labels, uint32_t task);

// Makes one document of each text, in this order. `labels` are the names of the model's labels, and a text's
// label is one of these names. If no text uses a name and no name is a number, a label may also be an index
// into `labels`, and all texts may have lists of ones and zeros, one for each of `labels`. Throws a Failure
// that names the line of a label that the model does not know, or that does not fit the model's task.
Examples label_examples(std::span<const LabelledText> texts, std::span<const std::string> labels,
                        const Tokenization& tokenization, const stw_model_info& model, uint64_t sequence,
                        Order order);

}  // namespace command
