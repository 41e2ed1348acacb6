// Generation: feeds tokens through the programs with a cache of keys and values, and draws the next ones.
#include <algorithm>
#include <cmath>
#include <vector>

#include "src/elementary.h"
#include "src/numbers.h"
#include "src/random.h"
#include "src/trainer.h"

namespace stw {

namespace {

// One of the probabilities that softmax(logits / temperature) gives the top_k largest; ties to the smaller token.
int32_t sample(const float* logits, int64_t vocabulary, const GenerateOptions& o, uint64_t position, std::vector<int32_t>& order) {
  order.resize(static_cast<size_t>(vocabulary));
  for (int64_t i = 0; i < vocabulary; ++i) order[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  auto larger = [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; };
  if (o.temperature <= 0) return *std::min_element(order.begin(), order.end(), larger);
  const size_t k = o.top_k == 0 ? order.size() : std::min<size_t>(o.top_k, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(), larger);
  const double top = logits[order[0]];
  double sum = 0;
  for (size_t i = 0; i < k; ++i) sum += portable_exp((logits[order[i]] - top) / o.temperature);
  const auto words = philox(o.seed, {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0x67656e, 0});
  double left = sum * ((static_cast<double>(words[0]) + words[1] / 4294967296.0) / 4294967296.0);
  for (size_t i = 0; i < k; ++i) {
    left -= portable_exp((logits[order[i]] - top) / o.temperature);
    if (left < 0) return order[i];
  }
  return order[k - 1];
}

}  // namespace

// Reads `count` tokens from state_.position on; returns the logits after the last one.
Result<const float*> Trainer::feed(const int32_t* tokens, uint64_t count) {
  const Program &prefill = planned_->programs.prefill, &decode = planned_->programs.decode;
  const uint64_t rows = static_cast<uint64_t>(prefill.instructions[0].rows), capacity = static_cast<uint64_t>(sequence());
  for (uint64_t done = 0; done < count;) {
    STW_TRY(check_cancelled());
    // The last token makes logits. Rows of a prefill past the end are overwritten before anyone attends to them.
    if (count - done > 1 && state_.position + rows <= capacity) {
      const uint64_t n = std::min(rows, count - done - 1);
      fed_.assign(rows, 0);
      std::copy_n(tokens + done, n, fed_.begin());
      stream_->upload(execution_.rows<int32_t>(prefill, prefill.inputs[Input::tokens]), fed_.data(), rows * sizeof(int32_t));
      STW_TRY(stream_->run(execution_, prefill));
      state_.position += n;
      done += n;
    } else {
      stream_->upload(execution_.rows<int32_t>(decode, decode.inputs[Input::tokens]), tokens + done, sizeof(int32_t));
      STW_TRY(stream_->run(execution_, decode));
      state_.position += 1;
      done += 1;
    }
    push_state();
  }
  return read_logits(decode, 0);
}

Result<uint64_t> Trainer::generate(const GenerateOptions& o) {
  STW_TRY(check_ready());
  const uint64_t capacity = static_cast<uint64_t>(sequence());
  if (graph().task == Task::masked_language_model) return Error{Code::unsupported, "generate: the model is a masked language model, and does not know what follows a text"};
  if (graph().labels > 0) return Error{Code::unsupported, "generate: the model is a classifier, and does not know what follows a text"};
  if (o.prompt_count < 1 || !o.prompt) return Error{Code::bad_argument, "generate: the prompt has no token"};
  if (o.prompt_count > capacity || o.out_capacity > capacity - o.prompt_count)
    return Error{Code::unsupported_shape, "generate: " + std::to_string(o.prompt_count) + " tokens of prompt and " +
                                              std::to_string(o.out_capacity) + " new ones do not fit the plan's sequence of " +
                                              std::to_string(capacity)};
  STW_TRY(check_tokens("generate", o.prompt, o.prompt_count));
  if (o.out_capacity == 0) return uint64_t{0};
  const Computing computing(*this);
  const InPhase phase(*this, TrainerPhase::generate);
  std::vector<int32_t> order;
  begin_state();
  auto logits = feed(o.prompt, o.prompt_count);
  for (uint64_t i = 0; logits && i < o.out_capacity; ++i) {
    if (!are_finite(*logits)) return Error{Code::non_finite, "generate: the model's logits are not finite"};
    o.out[i] = sample(*logits, graph().vocabulary, o, state_.position, order);
    if (std::find(o.stop.begin(), o.stop.end(), o.out[i]) != o.stop.end()) return i + 1;
    if (i + 1 < o.out_capacity) logits = feed(&o.out[i], 1);
  }
  if (!logits) return std::move(logits.error());
  return o.out_capacity;
}

}  // namespace stw
