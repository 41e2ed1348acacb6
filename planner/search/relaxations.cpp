#include "planner/search/relaxations.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace stw {

namespace {

// The request with one change.
struct Offer {
  std::string change;
  bool changes_numerics;
  Request request;
  Numerics numerics;
};

std::vector<Offer> offers(const Request& request, const Numerics& numerics, bool has_adapters) {
  std::vector<Offer> list;
  auto add = [&](const std::string& change, bool changes_numerics) -> Offer& {
    return list.emplace_back(Offer{change, changes_numerics, request, numerics});
  };
  if (request.micro_batch > 1 && !request.fused_update)
    add("micro_batch auto", false).request.micro_batch = 0;
  if (request.recompute != Recompute::choose)
    add("recompute auto", false).request.recompute = Recompute::choose;
  if (numerics.state_bits == 32 && optimizer_row(numerics.optimizer).has_8bit_states)
    add("states 8", true).numerics.state_bits = 8;
  if (numerics.precision == Precision::bf16 && numerics.master == Master::exact)
    add("master split8", true).numerics.master = Master::short_remainder;
  for (const Quantize codes : {Quantize::int8, Quantize::nf4}) {
    const bool is_finer = numerics.quantize == Quantize::none ||
                          (numerics.quantize == Quantize::int8 && codes == Quantize::nf4);
    if (is_finer && has_adapters)
      add(std::string("quantize ") + name_of(codes), true).numerics.quantize = codes;
  }
  if (numerics.quantize_embeddings == Quantize::none && has_adapters)
    add("quantize_embeddings int8", true).numerics.quantize_embeddings = Quantize::int8;
  if (request.attention == Attention::cudnn) {
    Offer& own = add("attention own", true);
    own.request.attention = own.numerics.attention = Attention::own;
  }
  if (!request.fused_update) add("host_memory", false).request.host_bytes = size_limit;
  if (!request.fused_update && numerics.gradients != Gradients::bf16)
    add("gradients bf16", true).numerics.gradients = Gradients::bf16;
  if (numerics.precision == Precision::fp32) {
    Request in_bf16 = request;
    in_bf16.precision = Precision::bf16;
    Offer& bf16 = add("precision bf16", true);
    bf16.numerics.precision = Precision::bf16;
    bf16.numerics.kernels = numerics_of(in_bf16, numerics.state_bits).kernels;
  }
  if (!request.fused_update && request.host_bytes == 0 && numerics.precision != Precision::fp16) {
    // Fused updates exclude some settings. The offer changes these as well.
    std::string change = "fused_update";
    if (numerics.gradients != Gradients::fp32) change += ", gradients fp32";
    if (request.micro_batch > 0 && request.micro_batch != request.global_batch)
      change += ", micro_batch auto";
    Offer& fused = add(change, true);
    fused.request.fused_update = fused.numerics.fused_update = true;
    fused.request.micro_batch = 0;
    fused.numerics.gradients = Gradients::fp32;
  }
  return list;
}

}  // namespace

Candidate fastest_of_smallest(SearchSpace& space) {
  return *space.fastest(space.arena(space.smallest().decisions));
}

std::vector<Relaxation> relaxations(const GraphSource& source, const Request& request,
                                    const DeviceProfile& device, SearchSpace& space, const Candidate& base,
                                    uint64_t arena_budget) {
  const uint64_t bytes = space.arena(space.smallest().decisions);
  // The savings and costs of an offer. Empty if it saves no bytes.
  auto price = [&](const Offer& offer) -> std::optional<Relaxation> {
    // An offer of host memory sets no limit. The bytes that its plan uses are reported.
    const bool to_host = offer.request.host_bytes != request.host_bytes;
    SearchSpace other(source, offer.numerics, offer.request, device,
                      to_host || request.host_bytes == 0 ? Effort::rough : Effort::full);
    if (other.is_empty()) return std::nullopt;
    const uint64_t needs = other.arena(other.smallest().decisions);
    if (needs >= bytes) return std::nullopt;
    const bool fits = needs <= arena_budget;
    const Candidate found = fits ? *other.fastest(arena_budget) : fastest_of_smallest(other);
    const double cost = static_cast<double>(found.picoseconds) / static_cast<double>(base.picoseconds) - 1;
    const Decisions& d = found.decisions;
    const std::string bytes_needed =
        to_host ? " " + std::to_string(
                            make_arena(other.graph(), device.alignment, d.offload, d.micro_batch).host_bytes)
                : "";
    return Relaxation{offer.change + bytes_needed, bytes - (to_host ? other.arena(d) : needs), cost,
                      offer.changes_numerics, fits};
  };
  std::vector<Relaxation> list;
  for (const Offer& offer : offers(request, space.numerics(), space.graph().has_adapters()))
    if (std::optional<Relaxation> relaxation = price(offer)) list.push_back(std::move(*relaxation));
  std::stable_sort(list.begin(), list.end(), [](const Relaxation& a, const Relaxation& b) {
    if (a.changes_numerics != b.changes_numerics) return b.changes_numerics;
    return a.costs_fraction < b.costs_fraction;
  });
  return list;
}

}  // namespace stw
