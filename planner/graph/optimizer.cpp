#include "planner/graph/optimizer.h"

#include <algorithm>
#include <cassert>
#include <string_view>

namespace stw {

namespace {

constexpr StateTensor first{".first", Format::f32, StateShape::element},
    second{".second", Format::f32, StateShape::element};
constexpr StateTensor first_code{".first", Format::u8, StateShape::element},
    second_code{".second", Format::u8, StateShape::element};
constexpr StateTensor first_absmax{".first_absmax", Format::f32, StateShape::block};
constexpr StateTensor second_absmax{".second_absmax", Format::f32, StateShape::block};

constexpr UpdateRule adamw{OpKind::adamw, {first, second}};
constexpr UpdateRule adamw8{OpKind::adamw8, {first_code, second_code, first_absmax, second_absmax}};
constexpr UpdateRule sgd{OpKind::sgd, {first}};
constexpr UpdateRule lion{OpKind::lion, {first}};
constexpr UpdateRule lion8{OpKind::lion8, {first_code, first_absmax}};
constexpr UpdateRule muon{OpKind::muon, {first}, false};
constexpr UpdateRule adafactor_matrix{
    OpKind::adafactor,
    {{{".row_mean", Format::f32, StateShape::row}, {".column_mean", Format::f32, StateShape::column}}},
    false};
constexpr UpdateRule adafactor_vector{OpKind::adafactor, {StateTensor{}, second}, false};
// One rule for each kind of update op.
constexpr const UpdateRule* rules[] = {&adamw, &adamw8, &sgd, &lion, &lion8, &muon, &adafactor_matrix};
static_assert(std::none_of(std::begin(rules), std::end(rules),
                           [](const UpdateRule* r) {
                             return std::string_view(r->states[0].suffix) == second.suffix;
                           }),
              "a rule that keeps only a second state must leave its first entry empty");

const UpdateRule& rule_of_adamw(const Tensor&, const ParameterUse&, bool is_8bit) {
  return is_8bit ? adamw8 : adamw;
}
const UpdateRule& rule_of_sgd(const Tensor&, const ParameterUse&, bool) { return sgd; }
const UpdateRule& rule_of_lion(const Tensor&, const ParameterUse&, bool is_8bit) {
  return is_8bit ? lion8 : lion;
}
// Muon (Jordan 2024) updates the matrices of hidden layers. Embeddings, head and vectors get AdamW.
const UpdateRule& rule_of_muon(const Tensor& parameter, const ParameterUse& use, bool) {
  return is_hidden_matrix(parameter, use) ? muon : adamw;
}
const UpdateRule& rule_of_adafactor(const Tensor& parameter, const ParameterUse&, bool) {
  return parameter.shape.rank == 2 ? adafactor_matrix : adafactor_vector;
}

// SGD and Adafactor have no weight decay by default, as in PyTorch.
constexpr OptimizerRow rows[optimizer_count] = {
    {Optimizer::adamw, "adamw", true, {3e-4, 0.9, 0.95, 0, 0.1}, rule_of_adamw},
    {Optimizer::sgd, "sgd", false, {1e-2, 0, 0, 0.9, 0}, rule_of_sgd},
    {Optimizer::lion, "lion", true, {1e-4, 0.9, 0.99, 0, 0.1}, rule_of_lion},
    {Optimizer::muon, "muon", false, {3e-4, 0.9, 0.95, 0.95, 0.1}, rule_of_muon},
    {Optimizer::adafactor, "adafactor", false, {1e-2, 0, 0, 0, 0}, rule_of_adafactor},
};

}  // namespace

const OptimizerRow& optimizer_row(Optimizer optimizer) { return rows[static_cast<size_t>(optimizer)]; }

bool is_update(OpKind kind) {
  return std::any_of(std::begin(rules), std::end(rules),
                     [&](const UpdateRule* r) { return r->kind == kind; });
}

const UpdateRule& update_rule(OpKind kind) {
  const auto rule =
      std::find_if(std::begin(rules), std::end(rules), [&](const UpdateRule* r) { return r->kind == kind; });
  assert(rule != std::end(rules) && "`rules` lacks the rule of this op");
  return **rule;
}

bool keeps_8bit_states(const Tensor& parameter, const ParameterUse& use, const Numerics& numerics) {
  const int bits = parameter.state_bits > 0 ? parameter.state_bits : numerics.state_bits;
  return bits == 8 && optimizer_row(numerics.optimizer).has_8bit_states &&
         parameter.shape.elements() >= smallest_8bit_tensor && !use.by_embedding;
}

}  // namespace stw
