#include "src/weights/filling.h"

#include <algorithm>
#include <utility>

#include "planner/base/check_in.h"
#include "planner/graph/optimizer.h"
#include "src/base/elementary.h"
#include "src/base/numbers.h"
#include "src/device/machine.h"
#include "src/execute/call.h"

namespace stw {
namespace {

constexpr uint64_t elements_per_task = 4096;  // random weights or codes for each task of the thread pool
static_assert(elements_per_task % kernels::weight_block == 0);

// Calls body(first, count) for parts of `count` elements, on all threads if there is a pool.
template <class Body>
void for_parts(const kernels::Parallel& threads, uint64_t count, const Body& body) {
  if (!threads.run) return body(uint64_t{0}, count);
  struct Context {
    uint64_t count;
    const Body& body;
  } context{count, body};
  threads.run(
      threads.self, static_cast<int64_t>(ceil_div(count, elements_per_task)),
      [](void* self, int64_t index, int) {
        const Context& c = *static_cast<const Context*>(self);
        const uint64_t first = static_cast<uint64_t>(index) * elements_per_task;
        c.body(first, std::min(elements_per_task, c.count - first));
      },
      &context);
}

}  // namespace

const Op* update_of(const Graph& graph, int parameter) {
  for (const Op& op : graph.update_ops)
    if (is_update(op.kind) && op.outputs[0] == parameter) return &op;
  return nullptr;
}

Filling Filling::of_all(const Device& device, const Model& model, const Execution& execution, Stream& stream,
                        const Numerics& n) {
  Filling filling(model, execution, stream, elements, elements);
  if (!device.is_cuda() ||
      (model.has_weights() && n.quantize == Quantize::none && n.quantize_embeddings == Quantize::none))
    return filling;
  if (auto pool = device.make_pool(device.threads() > 0 ? device.threads() : processor_count()))
    filling.pool_ = std::move(*pool);
  return filling;
}

Status Filling::fill() {
  for (const RotaryTables& tables : graph().rotary) {
    put_table(tables, tables.cosine, portable_cos);
    put_table(tables, tables.sine, portable_sin);
  }
  if (const RelativeRows& relative = graph().relative; relative.tensor >= 0)
    stream_.upload(execution_.address(relative.tensor), relative.rows.data(),
                   relative.rows.size() * sizeof(int32_t));
  for (size_t p = 0; p < model_.parameters().size(); ++p) {
    const Tensor& tensor = model_.graph().at(model_.parameters()[p]);
    const uint64_t count = tensor.shape.elements();
    for (uint64_t first = 0; first < count; first += elements) {
      const uint64_t n = std::min(elements, count - first);
      check_in(n * sizeof(float));
      if (model_.holds_codes(tensor) && graph().at(model_.parameters()[p]).format == Format::nf4) {
        STW_TRY(model_.read_codes(tensor, first, n, codes_.data(), scales_.data()));
        put_codes(model_.parameters()[p], first, n);
        continue;
      }
      STW_TRY(read(tensor, first, n));
      put_part(p, first, values_.data(), n);
    }
  }
  return ok();
}

// All threads draw random weights: each weight is a function of its position alone.
Status Filling::read(const Tensor& tensor, uint64_t first, uint64_t count) {
  float* const out = values_.data();
  if (model_.has_weights()) return model_.read(tensor, first, count, out);
  for_parts(threads(), count, [&](uint64_t at, uint64_t n) {
    static_cast<void>(model_.read(tensor, first + at, n, out + at));  // only reading files can fail
  });
  return ok();
}

// Shape (sequence, frequencies). Like transformers: the angle is an fp32 product, its cosine and sine are
// rounded to fp32, and so is their product with the scale.
void Filling::put_table(const RotaryTables& tables, int tensor, double (*function)(double)) {
  const std::vector<float>& frequencies = tables.inverse_frequencies;
  const uint64_t count = static_cast<uint64_t>(graph().sequence) * frequencies.size();
  for (uint64_t first = 0; first < count; first += elements) {
    const uint64_t n = std::min(elements, count - first);
    check_in(n * sizeof(float));
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t position = (first + i) / frequencies.size();
      const float angle = static_cast<float>(position) * frequencies[(first + i) % frequencies.size()];
      values_[i] = tables.scale * static_cast<float>(function(static_cast<double>(angle)));
    }
    stream_.upload(execution_.address(tensor) + first * sizeof(float), values_.data(), n * sizeof(float));
  }
}

// A parameter has the same tensor number in the model's graph and in the trainer's, as the same builder makes
// both.
void Filling::put_part(size_t parameter, uint64_t first, const float* values, uint64_t count) {
  const int tensor = model_.parameters()[parameter];
  std::byte* at = execution_.address(tensor);
  if (graph().at(tensor).format == Format::f32) {
    stream_.upload(at + first * 4, values, count * 4);
    return;
  }
  if (is_quantized(graph().at(tensor).format)) {
    const kernels::WeightCodes codes = weight_codes_of(graph().at(tensor).format);
    for_parts(threads(), count, [&](uint64_t part, uint64_t n) {
      kernels::quantize_weights(codes, values + part, static_cast<int64_t>(n),
                                codes_.data() + kernels::code_bytes(codes, part),
                                scales_.data() + part / kernels::weight_block);
    });
    return put_codes(tensor, first, count);
  }
  const Op* update = update_of(graph(), tensor);  // null: frozen, without a master weight
  const int master_tensor = update ? update->outputs[1] : -1;
  std::byte* master = master_tensor >= 0 ? execution_.address(master_tensor) : nullptr;
  const bool is_short = master && graph().at(master_tensor).format == Format::u8;
  if (graph().at(tensor).format == Format::f16) {
    for (uint64_t i = 0; i < count; ++i) half_[i] = to_f16(values[i]);
    stream_.upload(at + first * 2, half_.data(), count * 2);
    if (master) stream_.upload(master + first * 4, values, count * 4);
    return;
  }
  for (uint64_t i = 0; i < count; ++i) {
    const SplitValue split = split_master(is_short ? rounded_to_24_bits(values[i]) : values[i]);
    half_[i] = split.half;
    remainder_[i] = split.remainder;
    short_remainder_[i] = static_cast<int8_t>(split.remainder >> 8);
  }
  stream_.upload(at + first * 2, half_.data(), count * 2);
  if (is_short) stream_.upload(master + first, short_remainder_.data(), count);
  else if (master) stream_.upload(master + first * 2, remainder_.data(), count * 2);
}

void Filling::put_codes(int tensor, uint64_t first, uint64_t count) {
  const kernels::WeightCodes codes = weight_codes_of(graph().at(tensor).format);
  std::byte* const scales =
      execution_.address(tensor) +
      kernels::scales_begin(codes, static_cast<int64_t>(graph().at(tensor).shape.elements()));
  stream_.upload(execution_.address(tensor) + kernels::code_bytes(codes, first), codes_.data(),
                 kernels::code_bytes(codes, count));
  stream_.upload(scales + first / kernels::weight_block * sizeof(float), scales_.data(),
                 ceil_div(count, kernels::weight_block) * sizeof(float));
}

void Filling::put(size_t parameter, uint64_t first, const float* values, uint64_t count) {
  for (uint64_t done = 0; done < count; done += elements)
    put_part(parameter, first + done, values + done, std::min(elements, count - done));
}

}  // namespace stw
