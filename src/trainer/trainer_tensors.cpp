// Access to a trainer's tensors from outside.
#include <algorithm>
#include <utility>
#include <vector>

#include "planner/base/check_in.h"
#include "src/weights/filling.h"
#include "src/trainer/trainer.h"

namespace stw {

void Trainer::write_parameter(size_t parameter, uint64_t first, const float* values, uint64_t count) {
  const bool as_they_are = graph().at(model_->parameters()[parameter]).format == Format::f32;
  Filling filling(*model_, execution_, *stream_, as_they_are ? 0 : count);
  as_created_ = false;
  filling.put(parameter, first, values, count);
}

Status Trainer::read_memory(std::byte* from, uint64_t bytes, const std::function<Status(std::span<const std::byte>)>& piece) {
  constexpr uint64_t at_once = 1 << 20;
  const std::byte* const there = stream_->on_host(from);
  std::vector<std::byte> copy(there ? 0 : static_cast<size_t>(std::min(bytes, at_once)));
  for (uint64_t done = 0; done < bytes; done += at_once) {
    const uint64_t n = std::min(at_once, bytes - done);
    check_in(n);
    if (there) {
      STW_TRY(piece({there + done, static_cast<size_t>(n)}));
      continue;
    }
    STW_TRY(stream_->download(copy.data(), from + done, n));
    STW_TRY(piece({copy.data(), static_cast<size_t>(n)}));
  }
  return ok();
}

Result<TensorMemory> Trainer::view(size_t parameter, TensorView kind) {
  if (lost_arena_) STW_TRY(check_ready());
  const int tensor = model_->parameters()[parameter];
  int found = -1;
  if (kind == TensorView::parameter && !is_quantized(graph().at(tensor).format)) found = tensor;
  if (kind == TensorView::gradient)
    for (auto g = graph().gradients.rbegin(); g != graph().gradients.rend(); ++g)
      if (g->parameter == tensor && graph().at(g->gradient).kind == Kind::gradient) found = g->gradient;
  const char* suffix = kind == TensorView::first_moment ? ".first" : kind == TensorView::second_moment ? ".second" : nullptr;
  if (const Op* update = update_of(graph(), tensor); update && suffix)
    for (size_t k = 2; k < update->outputs.size(); ++k)
      if (const int t = update->outputs[k]; t >= 0 && graph().at(t).format == Format::f32 && graph().at(t).name.ends_with(suffix)) found = t;
  if (found < 0) return Error{Code::unsupported, "trainer: " + graph().at(tensor).name + " has no such tensor of plain numbers"};
  return TensorMemory{execution_.address(found), graph().at(found).format, graph().at(found).shape, planned_->programs.arena.on_host(found)};
}

}  // namespace stw
