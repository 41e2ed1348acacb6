// Access to a trainer's tensors from outside.
#include "src/trainer/tensors.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/weights/filling.h"

namespace stw {

void write_parameter(TrainerCore& core, size_t parameter, uint64_t first, const float* values,
                     uint64_t count) {
  const bool as_they_are = core.graph().at(core.model->parameters()[parameter]).format == Format::f32;
  Filling filling(*core.model, core.execution, *core.stream, as_they_are ? 0 : count);
  core.is_untouched = false;
  filling.put(parameter, first, values, count);
}

Result<TensorMemory> view(TrainerCore& core, size_t parameter, TensorView kind) {
  if (core.condition == Condition::arena_lost) STW_TRY(core.check_ready());
  const int tensor = core.model->parameters()[parameter];
  int found = -1;
  if (kind == TensorView::parameter && !is_quantized(core.graph().at(tensor).format)) found = tensor;
  if (kind == TensorView::gradient)
    for (auto g = core.graph().gradients.rbegin(); g != core.graph().gradients.rend(); ++g)
      if (g->parameter == tensor && core.graph().at(g->gradient).role == Role::gradient) found = g->gradient;
  const char* suffix = kind == TensorView::first_moment    ? ".first"
                       : kind == TensorView::second_moment ? ".second"
                                                           : nullptr;
  if (const Op* update = update_of(core.graph(), tensor); update && suffix)
    for (size_t k = 2; k < update->outputs.size(); ++k)
      if (const int t = update->outputs[k];
          t >= 0 && core.graph().at(t).format == Format::f32 && core.graph().at(t).name.ends_with(suffix))
        found = t;
  if (found < 0)
    return Error{Code::unsupported,
                 "trainer: " + core.graph().at(tensor).name + " has no such tensor of plain numbers"};
  return TensorMemory{core.execution.address(found), core.graph().at(found).format,
                      core.graph().at(found).shape, core.programs().arena.on_host(found)};
}

}  // namespace stw
