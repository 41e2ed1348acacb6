#include "planner/search/offers.h"

#include <algorithm>
#include <bit>

#include "planner/base/figures.h"
#include "planner/graph/optimizer.h"

namespace stw {

namespace {

struct StepRow {
  Step step;
  const char* change;  // without the value of the last three
  const char* effect;  // on the result; empty: none
};

constexpr StepRow rows[step_count] = {
    {Step::precision, "precision bf16", "computes in bf16"},
    {Step::lora, "lora 16", "trains only adapters"},
    {Step::adafactor, "optimizer adafactor", "another optimizer with another learning rate"},
    {Step::states, "states 8", "8-bit optimizer states"},
    {Step::split8, "master split8", "weights of 24 bits"},
    {Step::stochastic, "master stochastic", "weights of 16 bits, rounded stochastically"},
    {Step::gradients, "gradients bf16", "gradients of 16 bits"},
    {Step::fused_update, "fused_update", "no clipping"},
    {Step::int8, "quantize int8", "8-bit weights below the adapters"},
    {Step::nf4, "quantize nf4", "4-bit weights below the adapters"},
    {Step::embeddings, "quantize_embeddings int8", "8-bit embeddings"},
    {Step::attention, "attention own", "attention by other kernels"},
    {Step::micro_batch, "micro_batch auto", ""},
    {Step::recompute, "recompute auto", ""},
    {Step::host_memory, "host_memory ", ""},
    {Step::sequence, "seq ", "shorter samples"},
    {Step::model, "model ", "a smaller model"},
};
static_assert(offered_rank == 16, "the row of Step::lora says so");

constexpr Steps free_steps = bits(Step::attention, Step::micro_batch, Step::recompute);

bool excludes_micro_batch(const Request& r) { return r.micro_batch > 0 && r.micro_batch != r.global_batch; }

}  // namespace

Steps possible_steps(const Request& r, bool has_adapters, const Alternatives& alternatives) {
  Steps steps = 0;
  auto add = [&](bool is_possible, Step step) { steps |= is_possible ? bit(step) : 0; };
  if (!(r.keep & keep_division)) {
    const bool changes_bits = r.fast && (r.keep & keep_numerics);
    add(r.micro_batch > 1 && !r.fused_update && !changes_bits, Step::micro_batch);
    add(r.recompute != Recompute::choose, Step::recompute);
    add(!r.fused_update, Step::host_memory);
  }
  if (r.keep & keep_numerics) return steps;
  add(r.attention == Attention::cudnn, Step::attention);
  add(r.precision != Precision::bf16 && !(r.keep & keep_precision), Step::precision);
  add(!(r.keep & keep_sequence) && alternatives.source && r.sequence > shortest_sequence, Step::sequence);
  add(!(r.keep & keep_model) && alternatives.smaller_presets, Step::model);
  const bool gets_adapters = !has_adapters && alternatives.source && !(r.keep & keep_adapters);
  add(gets_adapters, Step::lora);
  if (has_adapters || gets_adapters) {
    add(r.quantize == Quantize::none, Step::int8);
    add(r.quantize != Quantize::nf4, Step::nf4);
    add(r.quantize_embeddings == Quantize::none, Step::embeddings);
  }
  if (has_adapters) return steps;  // formats of what is trained would save little
  const bool may_have_8bit = optimizer_row(r.optimizer).has_8bit_states;
  add(r.state_bits == 32 && may_have_8bit, Step::states);
  add(r.master == Master::exact, Step::split8);
  add(r.master != Master::stochastic, Step::stochastic);
  add(r.gradients != Gradients::bf16 && !r.fused_update && !r.gradient_hook, Step::gradients);
  add(!r.fused_update && r.host_bytes == 0 && !(r.keep & keep_clipping) && !r.gradient_hook,
      Step::fused_update);
  add(r.optimizer != Optimizer::adafactor && !(r.keep & keep_optimizer), Step::adafactor);
  return steps;
}

bool contains(Steps set, Steps part) {
  if (set & bit(Step::stochastic)) set |= bit(Step::split8);
  if (set & bit(Step::nf4)) set |= bit(Step::int8);
  return (part & ~set) == 0;
}

std::vector<Steps> free_offers(Steps possible) {
  std::vector<Steps> list;
  for (Steps set = 1; set < Steps{1} << step_count; set <<= 1)
    if (possible & free_steps & set)
      for (size_t i = 0, count = list.size() + 1; i < count; ++i)
        list.push_back(set | (i == 0 ? 0 : list[i - 1]));
  std::stable_sort(list.begin(), list.end(),
                   [](Steps a, Steps b) { return std::popcount(a) < std::popcount(b); });
  return list;
}

std::vector<Steps> format_offers(Steps possible) {
  constexpr Step S = Step::states, M = Step::split8, G = Step::gradients, R = Step::stochastic,
                 F = Step::fused_update, A = Step::adafactor;
  constexpr Steps in_order[] = {
      bits(S),       bits(M),       bits(G),       bits(S, M),    bits(S, G),    bits(M, G), bits(S, M, G),
      bits(R),       bits(S, R),    bits(R, G),    bits(S, R, G), bits(F),       bits(S, F), bits(M, F),
      bits(S, M, F), bits(R, F),    bits(S, R, F), bits(A),       bits(A, M),    bits(A, G), bits(A, M, G),
      bits(A, R),    bits(A, R, G), bits(A, F),    bits(A, M, F), bits(A, R, F),
  };
  std::vector<Steps> list;
  auto add = [&](Steps set) {
    if (set && !(set & ~possible)) list.push_back(set);
  };
  const Steps to_bf16 = possible & bit(Step::precision);
  for (Steps set : in_order)  // only bf16 has other masters
    if (!to_bf16 || !(set & bits(M, R))) add(set);
  if (to_bf16) {
    add(to_bf16);
    for (Steps set : in_order) add(set | to_bf16);
  }
  return list;
}

std::vector<Steps> smallest_formats(Steps possible) {
  std::vector<Steps> list;
  const Steps from_precision = possible & bits(Step::precision, Step::stochastic);
  const Steps formats = from_precision | (possible & bit(Step::states));
  for (Steps last : {bit(Step::gradients), bit(Step::fused_update)})
    for (Steps with : {formats, from_precision | bit(Step::adafactor)})
      if (!((last | with) & ~possible)) list.push_back(last | with);
  return list;
}

std::vector<Steps> adapter_offers(Steps possible, bool has_adapters) {
  std::vector<Steps> list;
  const Steps base = has_adapters ? 0 : bit(Step::lora);
  for (Steps below : {bits(), bits(Step::int8), bits(Step::nf4), bits(Step::embeddings),
                      bits(Step::int8, Step::embeddings), bits(Step::nf4, Step::embeddings)})
    if ((base | below) && !((base | below) & ~possible)) list.push_back(base | below);
  return list;
}

// Shorter samples hold fewer texts.
static int64_t texts_of(const Request& request, const Offer& offer) {
  return (request.inputs.texts * offer.sequence + request.sequence - 1) / request.sequence;
}

Request changed_request(const Request& request, const Offer& offer) {
  Request r = request;
  r.keep = keep_everything;
  if (offer.has(Step::micro_batch)) r.micro_batch = 0;
  if (offer.has(Step::recompute)) r.recompute = Recompute::choose;
  if (offer.has(Step::attention)) r.attention = Attention::own;
  if (offer.has(Step::host_memory)) r.host_bytes = offer.host_bytes;
  if (offer.has(Step::precision)) r.precision = Precision::bf16;
  if (offer.has(Step::states)) r.state_bits = 8;
  if (offer.has(Step::split8)) r.master = Master::short_remainder;
  if (offer.has(Step::stochastic)) r.master = Master::stochastic;
  if (offer.has(Step::gradients)) r.gradients = Gradients::bf16;
  if (offer.has(Step::fused_update)) {
    r.fused_update = true;
    r.gradients = Gradients::fp32;
    if (excludes_micro_batch(r)) r.micro_batch = 0;
  }
  if (offer.has(Step::adafactor)) {
    r.optimizer = Optimizer::adafactor;
    if (r.state_bits == 8) r.state_bits = 0;
  }
  if (offer.has(Step::int8)) r.quantize = Quantize::int8;
  if (offer.has(Step::nf4)) r.quantize = Quantize::nf4;
  if (offer.has(Step::embeddings)) r.quantize_embeddings = Quantize::int8;
  if (offer.has(Step::sequence)) {
    r.inputs.texts = texts_of(r, offer);
    r.sequence = offer.sequence;
  }
  return r;
}

ModelChange model_change(const Offer& offer) {
  return {offer.has(Step::lora) ? offered_rank : 0, offer.has(Step::model) ? offer.preset : ""};
}

std::string change_text(const Request& request, const Offer& offer) {
  std::vector<std::string> words;
  for (const StepRow& row : rows) {
    if (!offer.has(row.step)) continue;
    std::string value;
    if (row.step == Step::host_memory) value = std::to_string(offer.host_bytes);
    if (row.step == Step::sequence) value = std::to_string(offer.sequence);
    if (row.step == Step::model) value = offer.preset;
    words.push_back(row.change + value);
    if (row.step == Step::sequence && request.inputs.texts > 0)
      words.push_back("texts " + std::to_string(texts_of(request, offer)));
    // Some steps exclude other settings of the request, which then change, too.
    if (row.step == Step::adafactor && request.state_bits == 8) words.emplace_back("states auto");
    if (row.step == Step::fused_update) {
      if (request.gradients != Gradients::fp32) words.emplace_back("gradients fp32");
      if (excludes_micro_batch(request) && !offer.has(Step::micro_batch))
        words.emplace_back("micro_batch auto");
    }
  }
  return joined(words);
}

std::string flags_text(const std::string& change) {
  std::string text;
  for (size_t at = 0; at < change.size();) {
    const size_t end = std::min(change.find(", ", at), change.size());
    std::string name = change.substr(at, std::min(change.find(' ', at), end) - at);
    std::string value = change.substr(at + name.size(), end - at - name.size());
    std::replace(name.begin(), name.end(), '_', '-');
    if (name == "host-memory") value = " " + std::to_string(std::stoull(value) / mebibyte) + "MiB";
    text += (text.empty() ? "--" : " --") + name + value;
    at = end + 2;
  }
  return text;
}

std::string effect_text(const Offer& offer) {
  std::vector<std::string> words;
  for (const StepRow& row : rows)
    if (offer.has(row.step) && *row.effect) words.emplace_back(row.effect);
  return joined(words);
}

bool changes_numerics(Steps steps) {
  return std::any_of(std::begin(rows), std::end(rows),
                     [&](const StepRow& row) { return (steps & bit(row.step)) && *row.effect; });
}

}  // namespace stw
