// preference compared with its definition in double, and its weights with finite differences, on every
// instruction set and on devices. Also pairs that do not count, and every split into micro-batches.
#include <functional>

#include "tests/golden/preferences.h"
#include "tests/kernels/everywhere.h"
#include "tests/kernels/update/update.h"

namespace stw::kernels::test::preference_test {
namespace {

constexpr Preference kinds[] = {Preference::dpo, Preference::ipo, Preference::simpo, Preference::orpo};

struct Case {
  int64_t samples, rows;
  std::vector<float> losses, reference;
  std::vector<int32_t> targets, positions;
  int64_t all() const { return samples * rows; }
};

// Consecutive documents of up to `longest` tokens. Each has a prompt without targets; some have no targets at
// all.
Case random_case(Random& random, int64_t samples, int64_t rows, int64_t longest) {
  Case c{samples, rows, {}, {}, {}, {}};
  for (int64_t sample = 0; sample < samples; ++sample) {
    int64_t left = 0, prompt = 0;
    for (int64_t row = 0, position = 0; row < rows; ++row, ++position, --left) {
      if (left == 0)
        left = random.between(1, longest),
        prompt = random.between(0, 4) == 0 ? longest : random.between(0, left - 1), position = 0;
      c.positions.push_back(static_cast<int32_t>(position));
      c.targets.push_back(position < prompt || left == 1 ? ignored_target : 3);
      c.losses.push_back(
          c.targets.back() == ignored_target ? 0 : static_cast<float>(random.between(1, 4000)) / 1000);
      c.reference.push_back(-static_cast<float>(random.between(1, 4000)) / 1000);
    }
  }
  return c;
}

double softplus(double x) { return x > 0 ? std::log1p(std::exp(-x)) : std::log1p(std::exp(x)) - x; }

struct PairReference {
  double loss = 0;
  uint64_t pairs = 0, correct_pairs = 0;
  std::vector<bool> counts;  // For each row.
};

// The sum over all pairs, from the definitions in stowage.h.
PairReference reference_of(const Case& c, const PairTerms& terms, const std::vector<double>& losses) {
  PairReference all;
  all.counts.assign(static_cast<size_t>(c.all()), false);
  for (int64_t sample = 0; sample < c.samples; ++sample) {
    std::vector<int64_t> begins;
    for (int64_t row = sample * c.rows; row < (sample + 1) * c.rows; ++row)
      if (c.positions[row] == 0) begins.push_back(row);
    begins.push_back((sample + 1) * c.rows);
    for (size_t d = 0; d + 2 < begins.size(); d += 2) {
      double p[2] = {}, r[2] = {}, n[2] = {};
      for (size_t k = 0; k < 2; ++k)
        for (int64_t row = begins[d + k]; row < begins[d + k + 1]; ++row) {
          if (c.targets[row] == ignored_target) continue;
          p[k] -= losses[row], r[k] += static_cast<double>(c.reference[row]), n[k] += 1;
        }
      if (n[0] == 0 || n[1] == 0) continue;
      for (int64_t row = begins[d]; row < begins[d + 2]; ++row) all.counts[row] = true;
      const double beta = terms.beta, e = terms.smoothing, of_sums = (p[0] - r[0]) - (p[1] - r[1]);
      const double of_means = p[0] / n[0] - p[1] / n[1],
                   of_both = (p[0] - r[0]) / n[0] - (p[1] - r[1]) / n[1];
      const auto odds = [](double mean) { return mean - std::log(-std::expm1(mean)); };
      const auto either_way = [&](double x) { return (1 - e) * softplus(x) + e * softplus(-x); };
      double loss = 0, ahead = of_means;
      if (terms.kind == Preference::dpo) loss = either_way(beta * of_sums), ahead = of_sums;
      if (terms.kind == Preference::ipo)
        loss = (of_both - 1 / (2 * beta)) * (of_both - 1 / (2 * beta)), ahead = of_both;
      if (terms.kind == Preference::simpo) loss = either_way(beta * of_means - terms.margin);
      if (terms.kind == Preference::orpo)
        loss = -p[0] / n[0] + beta * softplus(odds(p[0] / n[0]) - odds(p[1] / n[1]));
      all.loss += loss - terms.answer_share * p[0] / n[0];
      all.pairs += 1, all.correct_pairs += ahead > 0;
    }
  }
  return all;
}

struct Outcome {
  Buffer weights;
  StepState state;
};

Outcome compute(const Table& table, const Case& c, const PairTerms& terms, int threads,
                int64_t micro_batch = 0) {
  Outcome outcome{Buffer(DType::f32, std::vector<float>(static_cast<size_t>(c.all()), NAN)), {}};
  outcome.state.hits = 7;
  const int64_t step = micro_batch > 0 ? micro_batch : c.samples;
  for (int64_t first = 0; first < c.samples; first += step) {
    const auto at = static_cast<size_t>(first * c.rows);
    PreferenceArgs args{};
    args.samples = std::min(step, c.samples - first), args.rows_per_sample = c.rows, args.terms = terms;
    args.token_loss = c.losses.data() + at, args.targets = c.targets.data() + at,
    args.positions = c.positions.data() + at;
    args.reference =
        terms.kind == Preference::dpo || terms.kind == Preference::ipo ? c.reference.data() + at : nullptr;
    args.token_weights = floats_of(outcome.weights) + at, args.state = &outcome.state;
    run(table.preference, args, threads, preference_workspace(args, threads));
  }
  return outcome;
}

std::vector<PairTerms> all_terms() {
  std::vector<PairTerms> list;
  for (const Preference kind : kinds) {
    const bool is_smoothed = kind == Preference::dpo || kind == Preference::simpo;
    list.push_back({kind, 0.1, 0.4, 0, 0});
    list.push_back({kind, kind == Preference::ipo ? 0.5 : 2, 0, is_smoothed ? 0.2 : 0, 0.3});
  }
  return list;
}

std::string name_of(const PairTerms& terms) {
  return "kind " + std::to_string(static_cast<int>(terms.kind)) + ", beta " + std::to_string(terms.beta);
}

TEST(Preference, AgreesWithItsDefinitionAndItsDerivative) {
  Random random(3);
  for (const auto& [samples, rows, longest] :
       {std::tuple{1, 9, 4}, {3, 97, 20}, {2, 700, 3}, {2, 1500, 300}, {5, 1, 1}, {1, 2, 1}}) {
    const Case c = random_case(random, samples, rows, longest);
    std::vector<double> losses(c.losses.begin(), c.losses.end());
    for (const PairTerms& terms : all_terms()) {
      const Outcome first = compute(*tables()[0].table, c, terms, 1);
      const PairReference want = reference_of(c, terms, losses);
      EXPECT_NEAR(first.state.loss_sum, want.loss, 2e-6 * (1 + std::abs(want.loss))) << name_of(terms);
      EXPECT_EQ(first.state.target_count, want.pairs);
      EXPECT_EQ(first.state.hits, 7 + want.correct_pairs);
      const std::vector<float> weights = first.weights.floats();
      for (int64_t row = 0; row < c.all(); row += 1 + row / 20) {
        const auto at = static_cast<size_t>(row);
        if (!want.counts[at]) {
          EXPECT_EQ(weights[at], 0);
          continue;
        }
        if (c.targets[at] == ignored_target) continue;
        std::vector<double> moved = losses;
        constexpr double step = 1e-4;
        moved[at] += step;
        const double above = reference_of(c, terms, moved).loss;
        moved[at] -= 2 * step;
        const double slope = (above - reference_of(c, terms, moved).loss) / (2 * step);
        EXPECT_NEAR(weights[at], slope, 1e-5 + 1e-4 * std::abs(slope)) << name_of(terms) << ", row " << row;
      }
      for (const NamedTable& named : tables())
        for (const int threads : {1, 3}) {
          const Outcome other = compute(*named.table, c, terms, threads);
          EXPECT_TRUE(same_bits(other.weights, first.weights)) << named.name << ", " << name_of(terms);
          EXPECT_EQ(other.state.loss_sum, first.state.loss_sum) << named.name;
          EXPECT_EQ(other.state.target_count, first.state.target_count) << named.name;
          EXPECT_EQ(other.state.hits, first.state.hits) << named.name;
        }
    }
  }
}

// golden/preferences.py has the losses in PyTorch.
TEST(Preference, HasTheLossAndTheGradientOfPyTorch) {
  const auto number = [](int64_t index, int64_t seed) {
    const auto hash =
        static_cast<uint32_t>(static_cast<uint64_t>(index * 7919 + seed * 104729 + 12345) * 2654435761u);
    return static_cast<float>((hash >> 18) + 1) / 4096;
  };
  Case c{1, golden::preference_rows, {}, {}, {}, {}};
  for (const int length : golden::preference_documents)
    for (int position = 0; position < length; ++position) {
      const auto row = static_cast<int64_t>(c.positions.size());
      c.positions.push_back(position);
      c.targets.push_back(position + 1 < golden::preference_prompt || position + 1 == length ? ignored_target
                                                                                             : 1);
      c.losses.push_back(number(row, 1)), c.reference.push_back(-number(row, 2));
    }
  for (const golden::PreferenceCase& expected : golden::preference_cases) {
    const std::string kind = expected.kind;
    const Preference loss = kind == "dpo"     ? Preference::dpo
                            : kind == "ipo"   ? Preference::ipo
                            : kind == "simpo" ? Preference::simpo
                                              : Preference::orpo;
    for (const NamedTable& named : tables()) {
      const Outcome found =
          compute(*named.table, c,
                  {loss, expected.beta, expected.margin, expected.smoothing, expected.answer_share}, 1);
      EXPECT_NEAR(found.state.loss_sum, expected.loss, 1e-6 * (1 + expected.loss)) << kind;
      EXPECT_EQ(found.state.target_count, std::size(golden::preference_documents) / 2);
      for (size_t row = 0; row < c.targets.size(); ++row) {
        if (c.targets[row] == ignored_target) continue;
        EXPECT_NEAR(found.weights.floats()[row], expected.weight[row],
                    1e-6 * (1 + std::abs(expected.weight[row])))
            << kind << ", row " << row;
      }
    }
  }
}

TEST(Preference, IsTheSameForEverySplitIntoMicroBatches) {
  Random random(9);
  const Case c = random_case(random, 6, 260, 25);
  for (const PairTerms& terms : all_terms())
    for (const NamedTable& named : tables()) {
      const Outcome whole = compute(*named.table, c, terms, 2);
      EXPECT_GT(whole.state.target_count, 10u);
      for (const int64_t micro_batch : {1, 2, 4}) {
        const Outcome parts = compute(*named.table, c, terms, 2, micro_batch);
        EXPECT_TRUE(same_bits(parts.weights, whole.weights));
        EXPECT_EQ(parts.state.loss_sum, whole.state.loss_sum);
        EXPECT_EQ(parts.state.target_count, whole.state.target_count);
      }
    }
}

// If one document is almost certain or almost impossible, nothing overflows. Sums that are infinite or NaN
// show in the result.
TEST(Preference, OfExtremePairsIsFinite) {
  for (const PairTerms& terms : all_terms())
    for (const auto& [chosen, rejected] :
         {std::pair{0.0f, 90.0f}, {90.0f, 0.0f}, {0.0f, 0.0f}, {1e-7f, 1e-7f}, {3e3f, 3e3f}, {NAN, 1.0f}}) {
      Case c{1,
             8,
             std::vector<float>(8, chosen),
             std::vector<float>(8, -1.0f),
             std::vector<int32_t>(8, 1),
             {0, 1, 2, 3, 0, 1, 2, 3}};
      std::fill(c.losses.begin() + 4, c.losses.end(), rejected);
      for (const NamedTable& named : tables()) {
        const Outcome found = compute(*named.table, c, terms, 1);
        EXPECT_EQ(std::isfinite(found.state.loss_sum), !std::isnan(chosen))
            << name_of(terms) << ": " << chosen << ", " << rejected;
        if (std::isnan(chosen)) continue;
        // In double, the loss of infinite odds is not finite.
        const double want =
            reference_of(c, terms, std::vector<double>(c.losses.begin(), c.losses.end())).loss;
        if (std::isfinite(want)) {
          EXPECT_NEAR(found.state.loss_sum, want, 1e-5 * (1 + std::abs(want)))
              << name_of(terms) << ": " << chosen << ", " << rejected;
        }
        for (const float w : found.weights.floats())
          EXPECT_TRUE(std::isfinite(w)) << name_of(terms) << ": " << chosen << ", " << rejected;
      }
    }
}

}  // namespace
}  // namespace stw::kernels::test::preference_test
