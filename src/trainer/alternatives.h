// What the planner's relaxations may change about a model: adapters, another preset, the length of samples.
#pragma once
#include "planner/plan/plan.h"
#include "src/weights/model.h"

namespace stw {

// `model` must live as long as the result.
Alternatives alternatives_of(const Model& model);

}  // namespace stw
