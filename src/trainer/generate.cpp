// Generation feeds tokens through the programs with a key-value cache, and samples the next tokens.
#include <algorithm>
#include <vector>

#include "planner/base/check_in.h"
#include "src/base/numbers.h"
#include "src/trainer/sampling.h"
#include "src/trainer/texts.h"

namespace stw {

// Feeds `count` tokens at core_.state.position and returns the logits after the last one.
Result<const float*> TextRunner::feed(const int32_t* tokens, uint64_t count) {
  const Program &prefill = core_.programs().prefill, &decode = core_.programs().decode;
  const uint64_t rows = static_cast<uint64_t>(prefill.instructions[0].rows),
                 capacity = static_cast<uint64_t>(core_.sequence());
  for (uint64_t done = 0; done < count;) {
    check_in();
    // The last token goes through decode, which makes logits. A prefill's rows past the end are overwritten
    // before any token attends to them.
    if (count - done > 1 && core_.state.position + rows <= capacity) {
      const uint64_t n = std::min(rows, count - done - 1);
      fed_.assign(rows, 0);
      std::copy_n(tokens + done, n, fed_.begin());
      core_.stream->upload(core_.execution.rows<int32_t>(prefill, prefill.inputs[Input::tokens]), fed_.data(),
                           rows * sizeof(int32_t));
      STW_TRY(core_.stream->run(core_.execution, prefill));
      core_.state.position += n;
      done += n;
    } else {
      core_.stream->upload(core_.execution.rows<int32_t>(decode, decode.inputs[Input::tokens]), tokens + done,
                           sizeof(int32_t));
      STW_TRY(core_.stream->run(core_.execution, decode));
      core_.state.position += 1;
      done += 1;
    }
    core_.push_state();
  }
  return read_logits(decode, 0);
}

Result<uint64_t> TextRunner::generate(const GenerateOptions& o) {
  STW_TRY(core_.check_ready());
  const uint64_t capacity = static_cast<uint64_t>(core_.sequence());
  if (core_.graph().head.row().hides_tokens)
    return Error{Code::unsupported,
                 "generate: the model is a masked language model, and does not know what follows a text"};
  if (core_.graph().head.labels() > 0)
    return Error{Code::unsupported,
                 "generate: the model is a classifier, and does not know what follows a text"};
  if (o.prompt_count < 1 || !o.prompt) return Error{Code::bad_argument, "generate: the prompt has no token"};
  if (o.prompt_count > capacity || o.out_capacity > capacity - o.prompt_count)
    return Error{Code::unsupported_shape, "generate: " + std::to_string(o.prompt_count) +
                                              " tokens of prompt and " + std::to_string(o.out_capacity) +
                                              " new ones do not fit the plan's sequence of " +
                                              std::to_string(capacity)};
  STW_TRY(check_tokens("generate", o.prompt, o.prompt_count));
  if (o.out_capacity == 0) return uint64_t{0};
  return core_.watched(Work::generate, WorkUnit::none, 0, [&] { return make_text(o); });
}

Result<uint64_t> TextRunner::make_text(const GenerateOptions& o) {
  const Computing computing(core_);
  const InPhase phase(core_.progress, TrainerPhase::generate);
  core_.begin_state();
  auto logits = feed(o.prompt, o.prompt_count);
  for (uint64_t i = 0; logits && i < o.out_capacity; ++i) {
    if (!are_finite(*logits)) return Error{Code::non_finite, "generate: the model's logits are not finite"};
    o.out[i] =
        sample({*logits, static_cast<size_t>(core_.graph().vocabulary)}, o.sampling, core_.state.position);
    if (std::find(o.stop.begin(), o.stop.end(), o.out[i]) != o.stop.end()) return i + 1;
    if (i + 1 < o.out_capacity) logits = feed(&o.out[i], 1);
  }
  if (!logits) return std::move(logits.error());
  return o.out_capacity;
}

}  // namespace stw
