// The head that a model without labels gets for the labels of the data.
#pragma once
#include "data/data_flags.h"
#include "flags/flags.h"

namespace command {

// If the data has labels and the model has none, asks for a classifier with the labels of the data.
void take_labels(ModelFlags& model, const DataFlags& data);

}  // namespace command
