// The requirements of every update rule (bits, skipped steps, storage of the master, tied gradients), and the
// rules with one formula for each element: SGD and Lion.
#include "tests/golden/optimizers.h"
#include "tests/kernels/update/updates.h"

namespace stw::kernels::test::update_rules_test {
namespace {

TEST(UpdateRules, SameBitsEverywhereAndNoWritePastTheEnd) {
  Random random(1);
  for (const Rule& rule : rules)
    for (const Extents& shape : shapes_of(rule)) {
      const Parameter start = Parameter(random, shape).for_rule(rule);
      const StepState state = state_of();
      Parameter end = start;
      everywhere([&](const Table& table, int threads) {
        end = start;
        update(rule, table, end.args(state, 0.1), threads);
        return std::vector<Buffer>{end.bytes()};
      });
      const auto n = static_cast<size_t>(start.count);
      EXPECT_FALSE(std::equal(end.p.begin(), end.p.begin() + start.count, start.p.begin())) << rule.name;
      for (size_t i = n; i < start.p.size(); ++i) {
        ASSERT_EQ(end.p[i], start.p[i]) << rule.name << " " << shape.rows << "x" << shape.columns;
        ASSERT_EQ(end.first[i], start.first[i]);
        ASSERT_EQ(end.second[i], start.second[i]);
        ASSERT_EQ(end.code[i], start.code[i]);
      }
      EXPECT_EQ(end.absmax.back(), start.absmax.back());
      for (float value : end.p) ASSERT_TRUE(std::isfinite(value)) << rule.name;
    }
}

TEST(UpdateRules, SkippedStepTouchesNothing) {
  Random random(2);
  for (const Rule& rule : rules)
    for (uint64_t skip : {skip_no_target, skip_not_finite, skip_outlier}) {
      const Parameter start(random, {50, rule.vector ? 0 : 20});
      StepState state = state_of();
      state.skip = skip;
      for (const NamedTable& entry : tables())
        for (DType dtype : {DType::f32, DType::bf16, DType::f16})
          for (ProductKernels products : {ProductKernels::chain, ProductKernels::tensor}) {
            Parameter end = start;
            std::fill(end.gradient.begin(), end.gradient.end(), NAN);
            UpdateArgs args = end.args(state, 0.1, dtype);
            args.products = products;
            update(rule, *entry.table, args, 2);
            EXPECT_TRUE(same_bits(end.bytes(), start.bytes())) << rule.name << " " << entry.name;
          }
    }
}

// A master in two parts, or a master with an fp16 parameter, has the bits of the fp32 parameter, and so do
// the states.
TEST(UpdateRules, SplitAndSeparateMastersFollowTheParameter) {
  Random random(3);
  for (const Rule& rule : rules)
    for (const Extents& shape : shapes_of(rule)) {
      const Parameter start = Parameter(random, shape).for_rule(rule);
      const StepState state = state_of();
      for (const NamedTable& entry : tables()) {
        Parameter whole = start, split = start, separate = start;
        update(rule, *entry.table, whole.args(state, 0.1));
        update(rule, *entry.table, split.args(state, 0.1, DType::bf16));
        update(rule, *entry.table, separate.args(state, 0.1, DType::f16));
        uint64_t wrong = 0;
        for (size_t i = 0; i < whole.p.size(); ++i) {
          uint16_t half;
          int16_t remainder;
          split_master(whole.p[i], half, remainder);
          wrong += split.half[i] != half || split.remainder[i] != remainder;
        }
        EXPECT_EQ(wrong, 0u) << rule.name << " " << entry.name;
        EXPECT_TRUE(same_bits(separate.p, whole.p)) << rule.name;
        for (const Parameter* other : {&split, &separate}) {
          EXPECT_TRUE(same_bits(other->first, whole.first) && same_bits(other->second, whole.second));
          EXPECT_TRUE(other->code == whole.code && same_bits(other->absmax, whole.absmax));
        }
      }
    }
}

// Two gradients count as their fp32 sum; `rate` scales the learning rate and so the decay.
TEST(UpdateRules, SumTiedGradientsAndScaleTheRate) {
  Random random(4);
  for (const Rule& rule : rules) {
    const Parameter start = Parameter(random, {40, rule.matrix ? 30 : 0}).for_rule(rule);
    const Table& table = *tables().back().table;
    Parameter tied = start, summed = start;
    for (size_t i = 0; i < summed.gradient.size(); ++i) summed.gradient[i] += summed.tied[i];
    const StepState state = state_of();
    StepState half_rate = state;
    half_rate.learning_rate /= 2;
    UpdateArgs args = tied.args(half_rate, 0.1);
    args.gradient[1] = tied.tied.data(), args.rate = 2;
    update(rule, table, args);
    update(rule, table, summed.args(state, 0.1));
    EXPECT_TRUE(same_bits(tied.bytes(), summed.bytes())) << rule.name;
  }
}

// bf16 gradients are read as the same fp32 numbers, wherever they begin. AdamW's rules have tests of their
// own for everything else.
TEST(UpdateRules, GradientsInBf16CountAsTheSameFp32Numbers) {
  Random random(5);
  std::vector<Rule> all(std::begin(rules), std::end(rules));
  all.push_back({"adamw", &Table::adamw, nullptr, false, true});
  all.push_back({"adamw8", &Table::adamw8, nullptr, false, true});
  StepState state = state_of();
  state.epsilon = 1e-8, state.step_size = 1e-2, state.correction2 = 0.2;
  for (const Rule& rule : all)
    for (const Extents& shape : {Extents{1, 0}, {257, 0}, {5000, 0}, {17, 5}, {40, 70}}) {
      if (!(shape.columns > 0 ? rule.matrix : rule.vector)) continue;
      const Parameter start = Parameter(random, shape).for_rule(rule);
      std::vector<uint8_t> second_code(start.code.size());
      for (uint8_t& value : second_code) value = static_cast<uint8_t>(random.bits());
      for (bool tied : {false, true})
        for (int64_t first : {0, 1}) {
          const Buffer halves = Buffer::normal(DType::bf16, random, start.count + 1, 0.3),
                       others = Buffer::normal(DType::bf16, random, start.count + 1, 0.3);
          const std::vector<float> floats = halves.floats(), other_floats = others.floats();
          const auto updated = [&](const Table& table, int threads, DType dtype) {
            Parameter end = start;
            std::vector<uint8_t> code = second_code;
            std::vector<float> absmax = start.absmax;
            UpdateArgs args = end.args(state, 0.1);
            args.second_code = code.data(), args.second_absmax = absmax.data();
            args.gradient_dtype = dtype;
            const auto begin_of = [&](const Buffer& half, const std::vector<float>& wide) -> const void* {
              if (dtype == DType::f32) return wide.data() + first;
              return static_cast<const uint16_t*>(half.data()) + first;
            };
            args.gradient[0] = begin_of(halves, floats);
            if (tied) args.gradient[1] = begin_of(others, other_floats);
            update(rule, table, args, threads);
            Buffer codes(DType::bf16, static_cast<int64_t>(code.size() + 1) / 2);
            std::memcpy(codes.data(), code.data(), code.size());
            return std::vector<Buffer>{end.bytes(), codes, Buffer(DType::f32, absmax)};
          };
          Buffer bytes;
          everywhere([&](const Table& table, int threads) {
            const std::vector<Buffer> found = updated(table, threads, DType::bf16),
                                      expected = updated(table, threads, DType::f32);
            for (size_t i = 0; i < found.size(); ++i)
              EXPECT_TRUE(same_bits(found[i], expected[i]))
                  << rule.name << " " << shape.rows << "x" << shape.columns << ", output " << i;
            bytes = found[0];
            return found;
          });
          EXPECT_FALSE(same_bits(bytes, start.bytes())) << rule.name;
        }
    }
}

// The error of the elements before the guard, relative to the largest of them or to 1, whichever is larger:
// if there are few elements, all may be almost 0 because a difference cancels.
double error_of(const std::vector<float>& found, std::vector<double> expected) {
  std::vector<float> head(found.begin(), found.begin() + static_cast<int64_t>(expected.size()));
  head.push_back(1), expected.push_back(1);
  return relative_error(head, expected);
}

// At most five roundings of 2^-24 an element: 3e-7.
TEST(Sgd, AgreesWithDouble) {
  Random random(5);
  for (const Extents& shape : shapes_of(sgd_rule))
    for (double momentum : {0.0, 0.9})
      for (bool nesterov : {false, true})
        for (bool remembers : {false, true}) {
          if (!remembers && momentum != 0) continue;
          Parameter s(random, shape);
          StepState state = state_of();
          state.momentum = momentum, state.nesterov = nesterov;
          std::vector<double> p, m;
          for (size_t i = 0; i < s.gradient.size(); ++i) {
            const double g = 0.37 * s.gradient[i] + 0.1 * s.p[i];
            m.push_back(momentum * s.first[i] + g);
            p.push_back(s.p[i] - 1e-2 * (nesterov ? g + momentum * m[i] : m[i]));
          }
          UpdateArgs args = s.args(state, 0.1);
          if (!remembers) args.first = nullptr;
          update(sgd_rule, *tables().back().table, args);
          EXPECT_LE(error_of(s.p, p), 3e-7);
          if (remembers) { EXPECT_LE(error_of(s.first, m), 3e-7); }
        }
}

// Where rounding could change the sign of a number near 0, either sign is right.
TEST(Lion, AgreesWithDouble) {
  Random random(6);
  for (const Extents& shape : shapes_of(lion_rule)) {
    Parameter s(random, shape);
    for (size_t i = 0; i < s.gradient.size(); i += 5) s.first[i] = s.gradient[i] = 0;  // sign(0) = 0.
    const StepState state = state_of();
    std::vector<double> p, m;
    uint64_t unsure = 0;
    for (size_t i = 0; i < s.gradient.size(); ++i) {
      const double g = 0.37 * s.gradient[i], old = 0.9 * s.first[i], fresh = 0.1 * g, c = old + fresh;
      const bool open = c != 0 && std::fabs(c) < 1e-6 * (std::fabs(old) + std::fabs(fresh));
      unsure += open;
      const double step = c > 0 ? 1e-2 : c < 0 ? -1e-2 : 0;
      p.push_back(open ? NAN : s.p[i] * (1 - 1e-3) - step);
      m.push_back(0.99 * s.first[i] + 0.01 * g);
    }
    update(lion_rule, *tables().back().table, s.args(state, 0.1));
    for (size_t i = 0; i < p.size(); ++i)
      if (std::isnan(p[i])) p[i] = s.p[i];
    EXPECT_LE(unsure, 1u);
    EXPECT_LE(error_of(s.p, p), 3e-7);
    EXPECT_LE(error_of(s.first, m), 3e-7);
  }
}

// Both sides round in fp32 a hundred times, in slightly different places. The largest measured error is
// 1.2e-7.
TEST(Sgd, AgreesWithTorchAfterAHundredSteps) {
  for (const golden::SgdCase& golden : golden::sgd_cases)
    for (const NamedTable& entry : tables()) {
      std::vector<float> p, m(golden::matrix_count), g = m;
      for (int i = 0; i < golden::matrix_count; ++i) p.push_back(number_at(0, i));
      StepState state{};
      state.learning_rate = golden.learning_rate, state.momentum = golden.momentum,
      state.nesterov = golden.nesterov;
      state.coefficient = 1;
      for (int step = 1; step <= golden::steps; ++step) {
        for (int i = 0; i < golden::matrix_count; ++i) g[i] = number_at(step, i);
        UpdateArgs args{};
        args.count = golden::matrix_count, args.parameter = p.data(), args.gradient[0] = g.data(),
        args.rate = 1;
        args.decay = golden.decay, args.state = &state,
        args.first = golden.momentum != 0 ? m.data() : nullptr;
        update(sgd_rule, *entry.table, args);
      }
      EXPECT_LE(relative_error(p, std::vector<double>(golden.matrix, golden.matrix + golden::matrix_count)),
                1e-6)
          << entry.name << ", momentum " << golden.momentum;
    }
}

}  // namespace
}  // namespace stw::kernels::test::update_rules_test
