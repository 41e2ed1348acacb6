// Shared by the tests of the update rules: the rules, a parameter with all that any rule reads or writes, the
// scalars of a step, a fixed sequence of numbers.
#pragma once
#include <algorithm>
#include <iterator>
#include <type_traits>

#include "tests/kernels/everywhere.h"

namespace stw::kernels::test {

struct Rule {
  const char* name;
  void (*Table::*kernel)(const Launch&, const List<UpdateArgs>&);  // One of the two kernels is null.
  void (*Table::*single)(const Launch&, const UpdateArgs&);
  bool matrix;  // Supports matrices.
  bool vector;  // Supports vectors.
};
inline constexpr Rule sgd_rule{"sgd", &Table::sgd, nullptr, false, true},
    lion_rule{"lion", &Table::lion, nullptr, false, true},
    lion8_rule{"lion8", &Table::lion8, nullptr, false, true},
    muon_rule{"muon", nullptr, &Table::muon, true, false},
    adafactor_rule{"adafactor", nullptr, &Table::adafactor, true, true};
inline constexpr Rule rules[] = {sgd_rule, lion_rule, lion8_rule, muon_rule, adafactor_rule};
#define STW_COUNT_UPDATE(name, Args) \
  +(std::is_same_v<Args, UpdateArgs> || std::is_same_v<Args, List<UpdateArgs>>)
static_assert(std::size(rules) + 2 == 0 STW_KERNELS(STW_COUNT_UPDATE),
              "every kernel that updates but AdamW's two, which have tests of their own");
#undef STW_COUNT_UPDATE

inline void update(const Rule& rule, const Table& table, const UpdateArgs& args, int threads = 1) {
  uint64_t bytes = 0;
  if (rule.single == &Table::muon) bytes = muon_workspace(args, threads);
  if (rule.single == &Table::adafactor) bytes = adafactor_workspace(args, threads);
  if (rule.single != nullptr) run(table.*rule.single, args, threads, bytes);
  else run(table.*rule.kernel, args, threads, bytes);
}

// rows × columns; vectors have columns 0.
struct Extents {
  int64_t rows, columns;
};
inline std::vector<Extents> shapes_of(const Rule& rule) {
  std::vector<Extents> shapes;
  if (rule.vector) shapes = {{1, 0}, {15, 0}, {255, 0}, {257, 0}, {4095, 0}, {5000, 0}, {20001, 0}};
  if (rule.matrix) {
    shapes.insert(shapes.end(), {{1, 1}, {1, 7}, {7, 1}, {17, 5}, {5, 17}, {64, 64}, {33, 129}, {129, 33}});
    if (emulated())  // For tiles of 64 × 64 and blocks of 64 rows, with few multiplications.
      shapes.insert(shapes.end(), {{140, 130}, {130, 140}, {200, 7}, {7, 200}});
    else
    // For blocks of 384 rows.
#ifdef STW_SANITIZED
      shapes.insert(shapes.end(), {{386, 390}, {900, 7}, {7, 900}});
#else
      shapes.insert(shapes.end(), {{70, 300}, {300, 210}, {210, 300}, {386, 390}, {900, 7}, {7, 900}});
#endif
  }
  return shapes;
}

// Splits as split masters are defined: nearest bf16, ties to the larger magnitude.
inline void split_master(float value, uint16_t& half, int16_t& remainder) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  half = static_cast<uint16_t>((bits >> 16) + ((bits & 0xffffu) >= 0x8000u ? 1u : 0u));
  remainder = static_cast<int16_t>(static_cast<int64_t>(bits) - (static_cast<int64_t>(half) << 16));
}

// A parameter in every storage, its states and its gradients. Guard elements follow each; no kernel may touch
// them.
struct Parameter {
  static constexpr int64_t guard = 300;  // More than a block of 8-bit states.
  int64_t count, columns;
  std::vector<float> p, first, second, absmax, gradient, tied;
  std::vector<uint8_t> code;
  std::vector<uint16_t> half;
  std::vector<int16_t> remainder;

  Parameter(Random& random, Extents shape)
      : count(shape.rows * std::max<int64_t>(shape.columns, 1)),
        columns(shape.columns),
        p(normals(random, count + guard)),
        first(normals(random, count + guard, 0.1)),
        second(first),
        absmax(normals(random, (count + 255) / 256 + 1)),
        gradient(normals(random, count, 0.3)),
        tied(normals(random, count, 0.3)),
        code(p.size()),
        half(p.size()),
        remainder(p.size()) {
    for (float& value : second) value *= value;
    for (float& value : absmax) value = 0.1f * std::fabs(value);
    for (uint8_t& value : code) value = static_cast<uint8_t>(random.bits());
    for (size_t i = 0; i < p.size(); ++i) split_master(p[i], half[i], remainder[i]);
  }
  int64_t rows() const { return columns > 0 ? count / columns : count; }
  // If the rule's first state holds squares, squares its values.
  Parameter& for_rule(const Rule& rule) {
    if (rule.single == &Table::adafactor)
      for (float& value : first) value *= value;
    return *this;
  }
  UpdateArgs args(const StepState& state, double decay = 0, DType dtype = DType::f32) {
    UpdateArgs a{};
    a.count = count;
    a.columns = columns;
    a.dtype = dtype;
    a.parameter = dtype == DType::f32 ? static_cast<void*>(p.data()) : half.data();
    if (dtype == DType::bf16) a.remainder = remainder.data();
    if (dtype == DType::f16) a.master = p.data();
    a.gradient[0] = gradient.data();
    a.rate = 1;
    a.decay = decay;
    a.state = &state;
    a.first = first.data();
    a.second = second.data();
    a.first_code = code.data();
    a.first_absmax = absmax.data();
    return a;
  }
  // Everything that a kernel may change, and the guards.
  Buffer bytes() const {
    std::vector<unsigned char> all;
    const auto append = [&all](const auto& values) {
      const auto* from = reinterpret_cast<const unsigned char*>(values.data());
      all.insert(all.end(), from, from + values.size() * sizeof(values[0]));
    };
    append(p), append(first), append(second), append(absmax), append(code), append(half), append(remainder);
    Buffer out(DType::bf16, static_cast<int64_t>(all.size() + 1) / 2);
    std::memcpy(out.data(), all.data(), all.size());
    return out;
  }
};

inline double code_value(const float* map, const Parameter& p, size_t i) {
  return map[p.code[i]] * p.absmax[i / 256];
}

// Gradients are normalised by 0.37; t is adafactor's step.
inline StepState state_of(double t = 4) {
  StepState s{};
  s.learning_rate = 1e-2, s.beta1 = 0.9, s.beta2 = 0.99, s.momentum = 0.9, s.coefficient = 0.37;
  s.inverse_root = 1 / std::sqrt(t), s.fresh_share = std::pow(t, -0.8);
  return s;
}

// A number in [-1, 1), a multiple of 2^-15. tests/golden/optimizers.py has the same function.
inline float number_at(int step, int element) {
  const uint32_t seed =
      static_cast<uint32_t>(step) * 7919u + static_cast<uint32_t>(element) * 104729u + 12345u;
  return (static_cast<float>(seed * 2654435761u >> 16) - 32768.0f) / 32768.0f;
}

}  // namespace stw::kernels::test
