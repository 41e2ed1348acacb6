// Several tensors in one call: each gets the bits of a call with that tensor alone, whatever the others are.
#include "tests/kernels/everywhere.h"
#include "tests/kernels/update/update.h"
#include "tests/kernels/update/updates.h"

namespace stw::kernels::test::together_test {
namespace {

struct Member {
  Parameter parameter;
  std::vector<uint8_t> second_code;
  std::vector<float> second_absmax;
  std::vector<uint16_t> half_gradient;
  UpdateArgs args;  // Without addresses.

  Member(Random& random, int64_t count)
      : parameter(random, {count, 0}),
        second_code(parameter.code.size()),
        second_absmax(parameter.absmax),
        args{} {
    for (uint8_t& code : second_code) code = static_cast<uint8_t>(random.bits());
    for (float g : parameter.gradient) {
      uint32_t bits;
      std::memcpy(&bits, &g, 4);
      half_gradient.push_back(static_cast<uint16_t>(bits >> 16));
    }
    args.dtype = all_dtypes[random.between(0, 2)];
    args.gradient_dtype = random.between(0, 1) == 0 ? DType::f32 : DType::bf16;
    args.gradient[1] = random.between(0, 4) == 0 ? this : nullptr;  // Not null: has a second one.
    args.rate = random.between(0, 3) == 0 ? 2 : 1;
    args.decay = random.between(0, 1) == 0 ? 0 : 0.1;
    args.stream = static_cast<uint32_t>(random.bits());
    // Null: rounded stochastically.
    args.remainder = random.between(0, 2) == 0 ? nullptr : parameter.remainder.data();
  }
  UpdateArgs args_of(const StepState& state) {
    UpdateArgs a = parameter.args(state, args.decay, args.dtype);
    a.gradient_dtype = args.gradient_dtype;
    if (a.gradient_dtype == DType::bf16) a.gradient[0] = half_gradient.data();
    if (args.gradient[1] != nullptr)
      a.gradient[1] = a.gradient_dtype == DType::bf16 ? static_cast<const void*>(half_gradient.data())
                                                      : parameter.tied.data();
    if (args.remainder == nullptr) a.remainder = nullptr;
    a.rate = args.rate, a.stream = args.stream;
    a.second_code = second_code.data(), a.second_absmax = second_absmax.data();
    return a;
  }
  std::vector<Buffer> results() const {
    Buffer codes(DType::bf16, static_cast<int64_t>(second_code.size() + 1) / 2);
    std::memcpy(codes.data(), second_code.data(), second_code.size());
    return {parameter.bytes(), codes, Buffer(DType::f32, second_absmax)};
  }
};

std::vector<Member> members(Random& random, int count) {
  std::vector<Member> list;
  for (int i = 0; i < count; ++i) {
    const int64_t sizes[] = {1, 15, 255, 768, 4096, 4097, 16384, 16640, 40001};
    list.emplace_back(random, sizes[random.between(0, count > 20 ? 5 : 8)]);
  }
  return list;
}

StepState adamw_state() {
  StepState state = state_of();
  state.epsilon = 1e-8, state.step_size = 1e-2, state.correction2 = 0.2, state.seed = 7, state.step = 3;
  return state;
}

TEST(Together, UpdatesHaveTheBitsOfSeparateCalls) {
  Random random(1);
  const StepState state = adamw_state();
  const Rule adamw{"adamw", &Table::adamw, nullptr, false, true},
      adamw8{"adamw8", &Table::adamw8, nullptr, false, true};
  for (const Rule& rule : {adamw, adamw8, sgd_rule, lion_rule, lion8_rule})
    for (int count : {1, 2, 9, most_together}) {
      const std::vector<Member> start = members(random, count);
      everywhere([&](const Table& table, int threads) {
        std::vector<Member> alone = start, together = start;
        std::vector<UpdateArgs> list;
        for (Member& member : together) list.push_back(member.args_of(state));
        run(table.*rule.kernel, List<UpdateArgs>{list.data(), count}, threads, 0);
        std::vector<Buffer> all;
        for (size_t i = 0; i < alone.size(); ++i) {
          update(rule, table, alone[i].args_of(state), threads);
          const std::vector<Buffer> expected = alone[i].results(), found = together[i].results();
          for (size_t k = 0; k < expected.size(); ++k)
            EXPECT_TRUE(same_bits(found[k], expected[k]))
                << rule.name << ", tensor " << i << " of " << count << ", output " << k;
          EXPECT_FALSE(same_bits(found[0], start[i].parameter.bytes())) << rule.name << ", tensor " << i;
          all.insert(all.end(), found.begin(), found.end());
        }
        return all;
      });
    }
}

TEST(Together, ASkippedStepChangesNothing) {
  Random random(2);
  StepState state = adamw_state();
  state.skip = skip_not_finite;
  const std::vector<Member> start = members(random, 9);
  for (const auto kernel : {&Table::adamw, &Table::adamw8, &Table::sgd, &Table::lion, &Table::lion8})
    for (const NamedTable& entry : tables()) {
      std::vector<Member> end = start;
      std::vector<UpdateArgs> list;
      for (Member& member : end) list.push_back(member.args_of(state));
      run(entry.table->*kernel, List<UpdateArgs>{list.data(), 9}, 2, 0);
      for (size_t i = 0; i < end.size(); ++i)
        EXPECT_TRUE(same_bits(end[i].parameter.bytes(), start[i].parameter.bytes())) << entry.name;
    }
}

TEST(Together, SumsOfSquaresHaveTheBitsOfSeparateCalls) {
  Random random(3);
  for (int count : {1, 2, 9, most_together}) {
    std::vector<Member> all = members(random, count);
    all[static_cast<size_t>(count) / 2].parameter.gradient[0] = INFINITY;
    StepState checked{}, alone_checked{};
    everywhere([&](const Table& table, int threads) {
      Buffer together(DType::f32, 2 * count), alone(DType::f32, 2 * count);
      std::vector<SquareSumArgs> list;
      for (int i = 0; i < count; ++i) {
        const UpdateArgs a = all[i].args_of(checked);
        list.push_back({a.count,
                        {a.gradient[0], a.gradient[1]},
                        static_cast<double*>(together.data()) + i,
                        a.gradient_dtype,
                        &checked});
      }
      checked = alone_checked = {};
      const List<SquareSumArgs> args{list.data(), count};
      run(table.square_sum, args, threads, square_sum_workspace(args, threads));
      for (int i = 0; i < count; ++i) {
        SquareSumArgs one = list[i];
        one.sum = static_cast<double*>(alone.data()) + i;
        one.checked = &alone_checked;
        run(table.square_sum, one, threads, square_sum_workspace(just(one), threads));
      }
      EXPECT_TRUE(same_bits(together, alone)) << count;
      EXPECT_EQ(checked.skip, alone_checked.skip) << count;
      return std::vector<Buffer>{together};
    });
  }
}

}  // namespace
}  // namespace stw::kernels::test::together_test
