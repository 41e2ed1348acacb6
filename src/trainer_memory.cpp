// What a trainer takes, what it lies there with, and where: the arena, host memory, tensors in both.
#include <algorithm>
#include <cstring>

#include "src/call.h"
#include "src/elementary.h"
#include "src/machine.h"
#include "src/numbers.h"
#include "src/trainer.h"

namespace stw {
namespace {

constexpr uint64_t made_at_once = 4096;   // random weights, or codes, of a task
static_assert(made_at_once % quantized_block == 0);

// body(first, count) for parts of `count` elements, by all threads where there are any.
template <class Body>
void for_parts(const kernels::Parallel& threads, uint64_t count, const Body& body) {
  if (!threads.run) return body(uint64_t{0}, count);
  struct Context { uint64_t count; const Body& body; } context{count, body};
  threads.run(threads.self, static_cast<int64_t>(ceil_div(count, made_at_once)), [](void* self, int64_t index, int) {
    const Context& c = *static_cast<const Context*>(self);
    const uint64_t first = static_cast<uint64_t>(index) * made_at_once;
    c.body(first, std::min(made_at_once, c.count - first));
  }, &context);
}

// The op that updates a parameter; null where it is frozen.
const Op* update_of(const Graph& graph, int parameter) {
  for (const Op& op : graph.update_ops)
    if (is_update(op.kind) && op.outputs[0] == parameter) return &op;
  return nullptr;
}

}  // namespace

Error Trainer::out_of_memory(const std::string& what, uint64_t needed, uint64_t available) {
  Error e{Code::out_of_memory, "trainer: " + what};
  e.bytes_needed = needed;
  e.bytes_available = available;
  return e;
}

std::string Trainer::refusal(bool enough_free, bool by_host, uint64_t wanted, uint64_t available) {
  if (by_host) return ", which the host's allocator refused";
  const std::string free = std::to_string(available) + " are free";
  return enough_free ? ", which the system refused, although " + free + ": a limit of the process?" : ", " + free + ", " + std::to_string(wanted - available) + " too few";
}

// As many as a message has room for.
std::string Trainer::holders_of_memory() const {
  constexpr size_t most_named = 3;
  std::string text;
  const std::vector<MemoryHolder> holders = device_.memory_holders();
  for (size_t i = 0; i < holders.size() && i < most_named; ++i)
    text += (i == 0 ? "; process " : ", process ") + std::to_string(holders[i].process) + (holders[i].name.empty() ? "" : " (" + holders[i].name.substr(0, 40) + ")") +
            " holds " + std::to_string(holders[i].bytes);
  return text;
}

// The system would promise more memory than it has and end the process later.
Result<std::byte*> Trainer::take_arena(uint64_t bytes, uint64_t wanted) const {
  const uint64_t available = device_.memory_free();
  const bool is_there = device_.has_allocator() || available == 0 || wanted <= available;
  void* memory = is_there ? device_.allocate(bytes, arena_alignment) : nullptr;
  if (!memory)
    return out_of_memory("the arena needs " + std::to_string(bytes) + " bytes" +
                             (wanted > bytes ? ", and what is offloaded " + std::to_string(wanted - bytes) + " of the same memory" : "") + refusal(is_there, device_.has_allocator(), wanted, available) +
                             (is_there ? "" : holders_of_memory()), wanted, available);
  if (reinterpret_cast<uintptr_t>(memory) % arena_alignment == 0) return static_cast<std::byte*>(memory);
  device_.release(memory, bytes);
  return Error{Code::bad_argument, "trainer: the host's allocator gave memory that does not lie at a multiple of 256"};
}

Result<std::byte*> Trainer::take_host(uint64_t bytes, uint64_t wanted) const {
  const uint64_t available = device_.host_memory_free();
  const bool by_host = device_.has_allocator() && !device_.is_cuda();
  const bool is_there = by_host || available == 0 || wanted <= available;
  void* memory = is_there ? device_.allocate_host(bytes, arena_alignment) : nullptr;
  if (!memory) {
    Error e = out_of_memory("what is offloaded needs " + std::to_string(bytes) + " bytes of host memory" + refusal(is_there, by_host, wanted, available), wanted, available);
    if (device_.is_cuda()) e.code = Code::host_out_of_memory;
    return e;
  }
  if (reinterpret_cast<uintptr_t>(memory) % arena_alignment == 0) return static_cast<std::byte*>(memory);
  device_.release_host(memory, bytes);
  return Error{Code::bad_argument, "trainer: the host's allocator gave memory that does not lie at a multiple of 256"};
}

Status Trainer::allocate() {
  const uint64_t bytes = plan().bytes.arena, host_bytes = plan().bytes.host;
  const bool brings_arena = options_.arena != nullptr;
  if (brings_arena) {
    if (options_.arena_bytes < bytes)
      return out_of_memory("the host's arena has " + std::to_string(options_.arena_bytes) + " bytes, the plan needs " + std::to_string(bytes),
                     bytes, options_.arena_bytes);
    if (reinterpret_cast<uintptr_t>(options_.arena) % arena_alignment != 0)
      return Error{Code::bad_argument, "trainer: the host's arena must lie at a multiple of 256"};
    arena_ = static_cast<std::byte*>(options_.arena);
    arena_bytes_ = options_.arena_bytes;
  }
  // A CPU has one memory for both.
  const bool shared = !device_.is_cuda();
  const uint64_t both = size_add(brings_arena ? 0 : bytes, host_bytes);
  if (!brings_arena) {
    STW_ASSIGN(arena, take_arena(bytes, shared ? both : bytes));
    arena_ = arena;
    arena_bytes_ = bytes;
    owns_arena_ = true;
  }
  if (host_bytes > 0) {
    STW_ASSIGN(host, take_host(host_bytes, shared ? both : host_bytes));
    host_ = host;
  }
  return ok();
}

std::byte* Trainer::address(int tensor) const {
  const Arena& layout = planned_->programs.arena;
  if (layout.on_host(tensor)) return host_ + layout.host[static_cast<size_t>(layout.host_of_tensor[static_cast<size_t>(tensor)])].offset;
  return arena_ + layout.persistent[static_cast<size_t>(layout.of_tensor[static_cast<size_t>(tensor)])].offset;
}

Trainer::Filling Trainer::filling_of_all() const {
  Filling filling;
  const Numerics& n = plan().numerics;
  if (!device_.is_cuda() || (model_->has_weights() && n.quantize == Quantize::none && n.quantize_embeddings == Quantize::none)) return filling;
  if (auto pool = device_.make_pool(device_.threads() > 0 ? device_.threads() : processor_count())) filling.pool = std::move(*pool);
  return filling;
}

Status Trainer::fill(Filling& filling) {
  // Every page is touched now: what the plan promised is there from the first step on.
  stream_->zero(arena_, plan().bytes.arena);
  if (host_) std::memset(host_, 0, plan().bytes.host);
  for (const RotaryTables& tables : graph().rotary) {
    fill_table(tables, tables.cosine, portable_cos, filling);
    fill_table(tables, tables.sine, portable_sin, filling);
  }
  for (size_t p = 0; p < model_->parameters().size(); ++p) {
    const Tensor& tensor = model_->graph().at(model_->parameters()[p]);
    const uint64_t count = tensor.shape.elements();
    for (uint64_t first = 0; first < count; first += Filling::elements) {
      const uint64_t n = std::min(Filling::elements, count - first);
      if (model_->holds_codes(tensor) && graph().at(model_->parameters()[p]).format == Format::nf4) {
        STW_TRY(model_->read_codes(tensor, first, n, filling.codes.data(), filling.scales.data()));
        put_codes(model_->parameters()[p], first, n, filling);
        continue;
      }
      STW_TRY(read_weights(tensor, first, n, filling));
      put_parameter(p, first, filling.values.data(), n, filling);
    }
  }
  return stream_->wait();
}

// Random ones are drawn by all threads: each is a function of its place alone.
Status Trainer::read_weights(const Tensor& tensor, uint64_t first, uint64_t count, Filling& filling) const {
  float* const out = filling.values.data();
  if (model_->has_weights()) return model_->read(tensor, first, count, out);
  for_parts(threads_of(filling), count, [&](uint64_t at, uint64_t n) {
    static_cast<void>(model_->read(tensor, first + at, n, out + at));   // only files can fail
  });
  return ok();
}

// (sequence, frequencies). Source: transformers: the angle is a product in fp32, cosine and sine of it are rounded to fp32, and so is
// their product with the scale.
void Trainer::fill_table(const RotaryTables& tables, int tensor, double (*function)(double), Filling& filling) {
  const std::vector<float>& frequencies = tables.inverse_frequencies;
  const uint64_t count = static_cast<uint64_t>(graph().sequence) * frequencies.size();
  for (uint64_t first = 0; first < count; first += Filling::elements) {
    const uint64_t n = std::min(Filling::elements, count - first);
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t position = (first + i) / frequencies.size();
      const float angle = static_cast<float>(position) * frequencies[(first + i) % frequencies.size()];
      filling.values[i] = tables.scale * static_cast<float>(function(static_cast<double>(angle)));
    }
    stream_->upload(address(tensor) + first * sizeof(float), filling.values.data(), n * sizeof(float));
  }
}

// A model's parameters and a graph's are numbered alike: both come from the same builder.
void Trainer::put_parameter(size_t parameter, uint64_t first, const float* values, uint64_t count, Filling& filling) {
  const int tensor = model_->parameters()[parameter];
  std::byte* at = address(tensor);
  if (graph().at(tensor).format == Format::f32) {
    stream_->upload(at + first * 4, values, count * 4);
    return;
  }
  if (is_quantized(graph().at(tensor).format)) {
    const kernels::WeightCodes codes = weight_codes_of(graph().at(tensor).format);
    for_parts(threads_of(filling), count, [&](uint64_t part, uint64_t n) {
      kernels::quantize_weights(codes, values + part, static_cast<int64_t>(n), filling.codes.data() + kernels::code_bytes(codes, part), filling.scales.data() + part / quantized_block);
    });
    return put_codes(tensor, first, count, filling);
  }
  const Op* update = update_of(graph(), tensor);   // none: frozen, without a master
  const int master_tensor = update ? update->outputs[1] : -1;
  std::byte* master = master_tensor >= 0 ? address(master_tensor) : nullptr;
  const bool is_short = master && graph().at(master_tensor).format == Format::u8;
  auto& half = filling.half;
  auto& remainder = filling.remainder;
  auto& short_remainder = filling.short_remainder;
  if (graph().at(tensor).format == Format::f16) {
    for (uint64_t i = 0; i < count; ++i) half[i] = to_f16(values[i]);
    stream_->upload(at + first * 2, half.data(), count * 2);
    if (master) stream_->upload(master + first * 4, values, count * 4);
    return;
  }
  for (uint64_t i = 0; i < count; ++i) {
    const SplitValue split = split_master(is_short ? rounded_to_24_bits(values[i]) : values[i]);
    half[i] = split.half;
    remainder[i] = split.remainder;
    short_remainder[i] = static_cast<int8_t>(split.remainder >> 8);
  }
  stream_->upload(at + first * 2, half.data(), count * 2);
  if (is_short) stream_->upload(master + first, short_remainder.data(), count);
  else if (master) stream_->upload(master + first * 2, remainder.data(), count * 2);
}

void Trainer::put_codes(int tensor, uint64_t first, uint64_t count, Filling& filling) {
  const kernels::WeightCodes codes = weight_codes_of(graph().at(tensor).format);
  std::byte* const scales = address(tensor) + kernels::scales_begin(codes, static_cast<int64_t>(graph().at(tensor).shape.elements()));
  stream_->upload(address(tensor) + kernels::code_bytes(codes, first), filling.codes.data(), kernels::code_bytes(codes, count));
  stream_->upload(scales + first / quantized_block * sizeof(float), filling.scales.data(), ceil_div(count, quantized_block) * sizeof(float));
}

void Trainer::write_parameter(size_t parameter, uint64_t first, const float* values, uint64_t count) {
  const bool as_they_are = graph().at(model_->parameters()[parameter]).format == Format::f32;
  Filling filling(0, as_they_are ? 0 : std::min(Filling::elements, count));
  as_created_ = false;
  for (uint64_t done = 0; done < count; done += Filling::elements)
    put_parameter(parameter, first + done, values + done, std::min(Filling::elements, count - done), filling);
}

Status Trainer::read_memory(std::byte* from, uint64_t bytes, const std::function<Status(std::span<const std::byte>)>& piece) {
  if (const std::byte* there = stream_->on_host(from)) return piece({there, static_cast<size_t>(bytes)});
  constexpr uint64_t at_once = 1 << 20;
  std::vector<std::byte> copy(static_cast<size_t>(std::min(bytes, at_once)));
  for (uint64_t done = 0; done < bytes; done += copy.size()) {
    const uint64_t n = std::min<uint64_t>(copy.size(), bytes - done);
    STW_TRY(stream_->download(copy.data(), from + done, n));
    STW_TRY(piece({copy.data(), static_cast<size_t>(n)}));
  }
  return ok();
}

Result<TensorMemory> Trainer::view(size_t parameter, TensorView kind) {
  if (lost_arena_) STW_TRY(check_ready());
  const int tensor = model_->parameters()[parameter];
  int found = -1;
  if (kind == TensorView::parameter && !is_quantized(graph().at(tensor).format)) found = tensor;
  if (kind == TensorView::gradient)
    for (auto g = graph().gradients.rbegin(); g != graph().gradients.rend(); ++g)
      if (g->parameter == tensor && graph().at(g->gradient).kind == Kind::gradient) found = g->gradient;
  const char* suffix = kind == TensorView::first_moment ? ".first" : kind == TensorView::second_moment ? ".second" : nullptr;
  if (const Op* update = update_of(graph(), tensor); update && suffix)
    for (size_t k = 2; k < update->outputs.size(); ++k)
      if (const int t = update->outputs[k]; t >= 0 && graph().at(t).format == Format::f32 && graph().at(t).name.ends_with(suffix)) found = t;
  if (found < 0) return Error{Code::unsupported, "trainer: " + graph().at(tensor).name + " has no such tensor of plain numbers"};
  return TensorMemory{address(found), graph().at(found).format, graph().at(found).shape, planned_->programs.arena.on_host(found)};
}

}  // namespace stw
