// The loss of a pair of documents, the first chosen and the second rejected, and its derivatives by the
// log-probabilities of both.
//
// For each document, P is the sum of the log-probabilities of its targets, R the reference model's sum, n the
// number of targets. S(x) = log(1 + e^-x), e = smoothing. [0] is the chosen document, [1] the rejected one.
//   dpo    x = beta·((P - R)[0] - (P - R)[1])           loss = (1 - e)·S(x) + e·S(-x)
//          Rafailov et al., arXiv:2305.18290; smoothing: Mitchell, "A note on DPO"
//   simpo  x = beta·(P/n[0] - P/n[1]) - margin          loss = (1 - e)·S(x) + e·S(-x)
//          Meng et al., arXiv:2405.14734
//   ipo    h = ((P - R)/n)[0] - ((P - R)/n)[1]          loss = (h - 1/(2·beta))²
//          Azar et al., arXiv:2310.12036, with means, as its authors advise
//   orpo   g = log(p / (1 - p)) with p = e^(P/n)        loss = beta·S(g[0] - g[1])
//          Hong et al., arXiv:2403.07691
// Every loss also has the term answer_share · (-P/n[0]), where -P/n[0] is the chosen document's mean token
// loss. ORPO adds this mean once more.
#pragma once
#include "kernels/common/math.h"

namespace stw::kernels::STW_ISA {

// Sums of log-probabilities of the documents' targets, and numbers of targets.
struct PairSums {
  double policy[2], reference[2];
  int64_t count[2];
};
struct PairEnd {
  double loss;
  float weight[2];  // For each document: d loss / d token_loss of its targets.
  // Whether the chosen document is ahead: DPO by P - R, IPO by (P - R)/n, SimPO and ORPO by P/n.
  bool chosen_is_ahead;
};

// log(1 + e^-x), and the negative of its derivative: 1 / (1 + e^x).
struct Softplus {
  float value, slope;
};
STW_INLINE Softplus softplus(float x) {
  const float e = exp1(x < 0 ? x : -x), log = log1(1.0f + e);
  return {x < 0 ? log - x : log, (x < 0 ? 1.0f : e) / (1.0f + e)};
}

// 1 - e^mean, or 2^-24 if that is larger. `mean` is a mean log-probability. Where the difference would
// cancel, a power series replaces it.
STW_INLINE double improbability(double mean) {
  const double near = -mean * (1 + mean / 2 * (1 + mean / 3 * (1 + mean / 4 * (1 + mean / 5))));
  const double most = mean > -0.125 ? near : 1 - (double)exp1((float)mean);
  constexpr double least = 1.0 / 16777216;
  return most > least ? most : least;
}

STW_INLINE PairEnd pair_end(const PairTerms& terms, const PairSums& pair) {
  const double n0 = (double)pair.count[0], n1 = (double)pair.count[1];
  const double mean0 = pair.policy[0] / n0, mean1 = pair.policy[1] / n1;
  double loss = 0, by0 = 0, by1 = 0;  // d loss / d log-probability.
  double ahead = 0;
  double answers = terms.answer_share;
  if (terms.kind == Preference::ipo) {
    ahead = (pair.policy[0] - pair.reference[0]) / n0 - (pair.policy[1] - pair.reference[1]) / n1;
    const double miss = ahead - 1 / (2 * terms.beta);
    loss = miss * miss;
    by0 = 2 * miss / n0;
    by1 = -2 * miss / n1;
  } else if (terms.kind == Preference::orpo) {
    ahead = mean0 - mean1;
    const double improbability0 = improbability(mean0), improbability1 = improbability(mean1);
    const Softplus of_odds = softplus(
        (float)(ahead - ((double)log1((float)improbability0) - (double)log1((float)improbability1))));
    loss = terms.beta * (double)of_odds.value;
    by0 = -terms.beta * (double)of_odds.slope / (improbability0 * n0);
    by1 = terms.beta * (double)of_odds.slope / (improbability1 * n1);
    answers += 1;
  } else {
    const bool is_mean = terms.kind == Preference::simpo;
    ahead =
        is_mean ? mean0 - mean1 : (pair.policy[0] - pair.reference[0]) - (pair.policy[1] - pair.reference[1]);
    const float x = (float)(terms.beta * ahead - (is_mean ? terms.margin : 0));
    const Softplus right = softplus(x), wrong = softplus(-x);
    loss = (1 - terms.smoothing) * (double)right.value + terms.smoothing * (double)wrong.value;
    const double by =
        terms.beta * (terms.smoothing * (double)wrong.slope - (1 - terms.smoothing) * (double)right.slope);
    by0 = is_mean ? by / n0 : by;
    by1 = is_mean ? -by / n1 : -by;
  }
  if (answers != 0) {
    loss = loss - answers * mean0;
    by0 = by0 - answers / n0;
  }
  return {loss, {(float)-by0, (float)-by1}, ahead > 0};
}

}  // namespace stw::kernels::STW_ISA
