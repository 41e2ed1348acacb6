// The losses of the document pairs of a micro-batch, and the weights of their tokens' gradients. Serial: a
// few thousand numbers.
#include "kernels/common/preference_pair.h"
#include "kernels/cpu/kernels_isa.h"

namespace stw::kernels::STW_ISA {

// The first row after the document that begins at `first`.
static int64_t end_of_document(const PreferenceArgs& args, int64_t first, int64_t end) {
  int64_t row = first + 1;
  while (row < end && args.positions[row] != 0) ++row;
  return row < end ? row : end;
}

void preference([[maybe_unused]] const Launch& launch, const PreferenceArgs& args) {
  STW_ASSERT_WORKSPACE(preference);
  for (int64_t sample = 0; sample < args.samples; ++sample) {
    const int64_t end = (sample + 1) * args.rows_per_sample;
    double sum = 0;
    for (int64_t first = sample * args.rows_per_sample; first < end;) {
      const int64_t begins[3] = {first, end_of_document(args, first, end),
                                 end_of_document(args, end_of_document(args, first, end), end)};
      PairSums pair{};
      for (int d = 0; d < 2; ++d)
        for (int64_t row = begins[d]; row < begins[d + 1]; ++row) {
          if (args.targets[row] == ignored_target) continue;
          pair.policy[d] -= (double)args.token_loss[row];
          if (args.reference != nullptr) pair.reference[d] += (double)args.reference[row];
          ++pair.count[d];
        }
      PairEnd last{};
      if (pair.count[0] > 0 && pair.count[1] > 0) {
        last = pair_end(args.terms, pair);
        sum += last.loss;
        ++args.state->target_count;
        args.state->hits += last.chosen_is_ahead;
      }
      for (int d = 0; d < 2 && args.token_weights != nullptr; ++d)
        for (int64_t row = begins[d]; row < begins[d + 1]; ++row) args.token_weights[row] = last.weight[d];
      first = begins[2];
    }
    args.state->loss_sum += sum;
  }
}

}  // namespace stw::kernels::STW_ISA
